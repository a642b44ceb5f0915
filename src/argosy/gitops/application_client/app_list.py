"""The Application list: filters, sorts, pages and counts rows.

In: rows, a query, what the caller may see. Out: Selection. Never: counts rows that the caller may not see.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Final, NamedTuple

from argosy.gitops.application_client.app_row import AppRow, row_of
from argosy.gitops.application_client.list_query import HEALTH_WORDS, PAGE_SIZE, SYNC_WORDS, Query, read_query
from argosy.kube.names import ResourceKey
from argosy.kube.schema.selectors import labels as read_labels

May = Callable[[AppRow], bool]
Test = Callable[[AppRow], bool]
Value = Callable[[AppRow], Any]

MOST_VALUES: Final = 100  # values per facet
_HEALTH_PLACE: Final = {"Degraded": 0, "Missing": 1, "Unknown": 2, "Progressing": 3, "Suspended": 4, "Healthy": 5}
_SYNC_PLACE: Final = {"OutOfSync": 0, "Unknown": 1, "Synced": 2}
_OPERATION_PLACE: Final = {"Running": 0, "Terminating": 1, "Error": 2, "Failed": 3}
_VALUES: Final[Mapping[str, Value]] = {
    "sync": operator.attrgetter("sync"),
    "health": operator.attrgetter("health"),
    "env": operator.attrgetter("environment"),
    "project": operator.attrgetter("project"),
    "cluster": operator.attrgetter("cluster"),
    "ns": operator.attrgetter("destination_namespace"),
    "repo": operator.attrgetter("repo"),
    "rev": operator.attrgetter("ref"),
    "autosync": lambda row: "manual" if row.policy == "Manual" else "auto",
    "op": operator.attrgetter("operation"),
}
_ORDERS: Final[Mapping[str, Value]] = {
    "name": operator.attrgetter("name", "namespace"),
    "ns": operator.attrgetter("destination_namespace"),
    "project": operator.attrgetter("project"),
    "env": operator.attrgetter("environment"),
    "sync": lambda row: _SYNC_PLACE.get(row.sync, 1),
    "health": lambda row: _HEALTH_PLACE.get(row.health, 2),
    "op": lambda row: _OPERATION_PLACE.get(row.operation, 4),
    "rev": operator.attrgetter("ref", "revisions"),
    "repo": operator.attrgetter("repo", "path"),
    "cluster": operator.attrgetter("cluster"),
    "created": operator.attrgetter("created"),
    "synced": operator.attrgetter("synced"),
}


class Facet(NamedTuple):
    """A filter value with the number of rows that it would leave, given the other filters."""

    value: str
    number: int
    is_chosen: bool


@dataclass(frozen=True)
class Selection:
    rows: tuple[AppRow, ...]  # of this page
    total: int  # rows that the caller may see
    page: int
    pages: int
    query: Query
    found: Sequence[AppRow] = field(repr=False)  # all matching rows
    nearly: Mapping[str, Sequence[AppRow]] = field(repr=False)  # by filter: rows that only this filter excludes

    @property
    def matching(self) -> int:
        return len(self.found)

    @cached_property
    def facets(self) -> Mapping[str, tuple[Facet, ...]]:
        return _facets(self.found, self.nearly, self.query)

    @cached_property
    def matrix(self) -> Mapping[tuple[str, str], int]:
        """Count matching rows by sync status and health."""
        return Counter(map(operator.attrgetter("sync", "health"), self.found))

    @property
    def first(self) -> int:
        """1-based number of the first row on this page; 0 if the page is empty."""
        return (self.page - 1) * PAGE_SIZE + 1 if self.rows else 0

    def count(self, sync: str = "", health: str = "") -> int:
        return sum(
            number for (one, other), number in self.matrix.items() if sync in ("", one) and health in ("", other)
        )


def select(
    rows: Sequence[AppRow],
    query: Query,
    may: May | None = None,
    favourites: Collection[ResourceKey] = frozenset(),
    *,
    size: int = PAGE_SIZE,
) -> Selection:
    """Filter, sort and page rows that are ordered by name and namespace; `can_see=None` permits every row."""
    seen = rows if may is None else [row for row in rows if may(row)]
    matching, nearly = _sifted(seen, _tests(query, favourites))
    ordered = _ordered(matching, query.sort)
    pages = max(1, -(-len(ordered) // size))
    page = min(query.page, pages)
    return Selection(
        rows=tuple(ordered[(page - 1) * size : page * size]),
        total=len(seen),
        page=page,
        pages=pages,
        query=query,
        found=ordered,
        nearly=nearly,
    )


def _tests(query: Query, favourites: Collection[ResourceKey]) -> dict[str, Test]:
    """Return predicates for the active filters only."""
    tests: dict[str, Test] = {}
    for name, value in _VALUES.items():
        if chosen := getattr(query, name):
            tests[name] = _one_of(value, frozenset(chosen))
    if query.q:
        tests["q"] = _searched(query.q.lower().split())
    if query.label:
        tests["label"] = _labelled(query.label)
    if query.fav is not None:
        tests["fav"] = lambda row: (row.key in favourites) is query.fav
    if query.held is not None:
        tests["held"] = lambda row: (row.hold is not None) is query.held
    return tests


def _one_of(value: Value, chosen: frozenset[str]) -> Test:
    return lambda row: value(row) in chosen


def _searched(words: Sequence[str]) -> Test:
    if len(words) == 1:
        word = words[0]
        return lambda row: word in row.searched
    return lambda row: all(word in row.searched for word in words)


def _labelled(selectors: Sequence[str]) -> Test:
    read = [read_labels(each) for each in selectors]
    return lambda row: all(each.matches(row.labels) for each in read)


def _sifted(rows: Sequence[AppRow], tests: Mapping[str, Test]) -> tuple[Sequence[AppRow], dict[str, list[AppRow]]]:
    """Return rows that pass all tests and, by test, rows that fail only that test (its facet counts these too)."""
    if not tests:
        return rows, {}
    passed: list[AppRow] = []
    nearly: dict[str, list[AppRow]] = {name: [] for name in tests}
    each_test = tuple(tests.items())
    for row in rows:
        failed = ""
        for name, test in each_test:
            if not test(row):
                if failed:
                    break
                failed = name
        else:
            (nearly[failed] if failed else passed).append(row)
    return passed, nearly


def _ordered(rows: Sequence[AppRow], sort: str) -> Sequence[AppRow]:
    name = sort.removeprefix("-")
    if sort == "name":
        return rows  # already in this order
    return sorted(rows, key=_ORDERS[name], reverse=sort.startswith("-"))  # stable: ties stay ordered by name


def _facets(
    matching: Sequence[AppRow], nearly: Mapping[str, Sequence[AppRow]], query: Query
) -> dict[str, tuple[Facet, ...]]:
    found = {
        name: _facet(Counter(map(value, chain(matching, nearly.get(name, ())))), getattr(query, name), _WORDS.get(name))
        for name, value in _VALUES.items()
    }
    pairs = Counter(chain.from_iterable(row.labels.items() for row in matching))
    counted = {f"{name}={value}": number for (name, value), number in pairs.items()}
    found["label"] = _facet(counted, query.label, None)
    held = sum(row.hold is not None for row in chain(matching, nearly.get("held", ())))
    found["held"] = (Facet("1", held, query.held is True),)
    return found


_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "sync": SYNC_WORDS, "health": HEALTH_WORDS, "autosync": ("auto", "manual"),
}  # fmt: skip


def _facet(counts: Mapping[str, int], chosen: Collection[str], words: Sequence[str] | None) -> tuple[Facet, ...]:
    """List predefined values in order, even with a count of 0; others by count. Chosen values are always listed."""
    if words is not None:
        names: Iterable[str] = words
    else:
        ranked = sorted(counts, key=lambda each: (-counts[each], each))
        names = [*(each for each in chosen if each not in counts), *ranked[:MOST_VALUES]]
        names = dict.fromkeys([*names, *(each for each in ranked[MOST_VALUES:] if each in chosen)])
    return tuple(Facet(name, counts.get(name, 0), name in chosen) for name in names if name)


__all__ = ["PAGE_SIZE", "AppRow", "Facet", "May", "Query", "Selection", "read_query", "row_of", "select"]
