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

from argosy.gitops.application_client.app_row import AppRow, build_row
from argosy.gitops.application_client.list_query import HEALTH_WORDS, PAGE_SIZE, SYNC_WORDS, AppListQuery, read_query
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.selectors import parse_label_selector as read_labels

CanSeeRow = Callable[[AppRow], bool]
RowPredicate = Callable[[AppRow], bool]
RowValue = Callable[[AppRow], Any]

MAX_FACET_VALUES: Final = 100  # values per facet
_HEALTH_SORT_ORDER: Final = {"Degraded": 0, "Missing": 1, "Unknown": 2, "Progressing": 3, "Suspended": 4, "Healthy": 5}
_SYNC_SORT_ORDER: Final = {"OutOfSync": 0, "Unknown": 1, "Synced": 2}
_OPERATION_SORT_ORDER: Final = {"Running": 0, "Terminating": 1, "Error": 2, "Failed": 3}
_FILTER_VALUES: Final[Mapping[str, RowValue]] = {
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
_SORT_KEYS: Final[Mapping[str, RowValue]] = {
    "name": operator.attrgetter("name", "namespace"),
    "ns": operator.attrgetter("destination_namespace"),
    "project": operator.attrgetter("project"),
    "env": operator.attrgetter("environment"),
    "sync": lambda row: _SYNC_SORT_ORDER.get(row.sync, 1),
    "health": lambda row: _HEALTH_SORT_ORDER.get(row.health, 2),
    "op": lambda row: _OPERATION_SORT_ORDER.get(row.operation, 4),
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
class AppListPage:
    rows: tuple[AppRow, ...]  # of this page
    total: int  # rows that the caller may see
    page: int
    pages: int
    query: AppListQuery
    matching_rows: Sequence[AppRow] = field(repr=False)  # all matching rows
    rows_failing_only: Mapping[str, Sequence[AppRow]] = field(
        repr=False
    )  # by filter: rows that only this filter excludes

    @property
    def matching(self) -> int:
        return len(self.matching_rows)

    @cached_property
    def facets(self) -> Mapping[str, tuple[Facet, ...]]:
        return _build_facets(self.matching_rows, self.rows_failing_only, self.query)

    @cached_property
    def matrix(self) -> Mapping[tuple[str, str], int]:
        """Count matching rows by sync status and health."""
        return Counter(map(operator.attrgetter("sync", "health"), self.matching_rows))

    @property
    def first(self) -> int:
        """1-based number of the first row on this page; 0 if the page is empty."""
        return (self.page - 1) * PAGE_SIZE + 1 if self.rows else 0

    def count(self, sync: str = "", health: str = "") -> int:
        return sum(
            number
            for (row_sync, row_health), number in self.matrix.items()
            if sync in ("", row_sync) and health in ("", row_health)
        )


def build_app_list_page(
    rows: Sequence[AppRow],
    query: AppListQuery,
    can_see: CanSeeRow | None = None,
    favourites: Collection[ResourceKey] = frozenset(),
    *,
    page_size: int = PAGE_SIZE,
) -> AppListPage:
    """Filter, sort and page rows that are ordered by name and namespace; `can_see=None` permits every row."""
    visible = rows if can_see is None else [row for row in rows if can_see(row)]
    matching, failing_only = _filter_rows(visible, _build_predicates(query, favourites))
    ordered = _sort_rows(matching, query.sort)
    pages = max(1, -(-len(ordered) // page_size))
    page = min(query.page, pages)
    return AppListPage(
        rows=tuple(ordered[(page - 1) * page_size : page * page_size]),
        total=len(visible),
        page=page,
        pages=pages,
        query=query,
        matching_rows=ordered,
        rows_failing_only=failing_only,
    )


def _build_predicates(query: AppListQuery, favourites: Collection[ResourceKey]) -> dict[str, RowPredicate]:
    """Return predicates for the active filters only."""
    predicates: dict[str, RowPredicate] = {}
    for name, value in _FILTER_VALUES.items():
        if chosen := getattr(query, name):
            predicates[name] = _value_in(value, frozenset(chosen))
    if query.q:
        predicates["q"] = _text_contains(query.q.lower().split())
    if query.label:
        predicates["label"] = _labels_match(query.label)
    if query.fav is not None:
        predicates["fav"] = lambda row: (row.key in favourites) is query.fav
    if query.held is not None:
        predicates["held"] = lambda row: (row.hold is not None) is query.held
    return predicates


def _value_in(value: RowValue, chosen: frozenset[str]) -> RowPredicate:
    return lambda row: value(row) in chosen


def _text_contains(words: Sequence[str]) -> RowPredicate:
    if len(words) == 1:
        word = words[0]
        return lambda row: word in row.search_text
    return lambda row: all(word in row.search_text for word in words)


def _labels_match(selectors: Sequence[str]) -> RowPredicate:
    label_selectors = [read_labels(selector) for selector in selectors]
    return lambda row: all(selector.matches(row.labels) for selector in label_selectors)


def _filter_rows(
    rows: Sequence[AppRow], predicates: Mapping[str, RowPredicate]
) -> tuple[Sequence[AppRow], dict[str, list[AppRow]]]:
    """Return rows that pass all tests and, by test, rows that fail only that test (its facet counts these too)."""
    if not predicates:
        return rows, {}
    passed: list[AppRow] = []
    failing_only: dict[str, list[AppRow]] = {name: [] for name in predicates}
    named_predicates = tuple(predicates.items())
    for row in rows:
        failed_name = ""
        for name, predicate in named_predicates:
            if not predicate(row):
                if failed_name:
                    break
                failed_name = name
        else:
            (failing_only[failed_name] if failed_name else passed).append(row)
    return passed, failing_only


def _sort_rows(rows: Sequence[AppRow], sort: str) -> Sequence[AppRow]:
    name = sort.removeprefix("-")
    if sort == "name":
        return rows  # already in this order
    return sorted(rows, key=_SORT_KEYS[name], reverse=sort.startswith("-"))  # stable: ties stay ordered by name


def _build_facets(
    matching: Sequence[AppRow], failing_only: Mapping[str, Sequence[AppRow]], query: AppListQuery
) -> dict[str, tuple[Facet, ...]]:
    facets = {
        name: _build_facet(
            Counter(map(value, chain(matching, failing_only.get(name, ())))),
            getattr(query, name),
            _PREDEFINED_VALUES.get(name),
        )
        for name, value in _FILTER_VALUES.items()
    }
    pairs = Counter(chain.from_iterable(row.labels.items() for row in matching))
    label_counts = {f"{name}={value}": number for (name, value), number in pairs.items()}
    facets["label"] = _build_facet(label_counts, query.label, None)
    held_count = sum(row.hold is not None for row in chain(matching, failing_only.get("held", ())))
    facets["held"] = (Facet("1", held_count, query.held is True),)
    return facets


_PREDEFINED_VALUES: Final[Mapping[str, Sequence[str]]] = {
    "sync": SYNC_WORDS, "health": HEALTH_WORDS, "autosync": ("auto", "manual"),
}  # fmt: skip


def _build_facet(
    counts: Mapping[str, int], chosen: Collection[str], predefined: Sequence[str] | None
) -> tuple[Facet, ...]:
    """List predefined values in order, even with a count of 0; others by count. Chosen values are always listed."""
    if predefined is not None:
        values: Iterable[str] = predefined
    else:
        ranked = sorted(counts, key=lambda value: (-counts[value], value))
        values = [*(value for value in chosen if value not in counts), *ranked[:MAX_FACET_VALUES]]
        values = dict.fromkeys([*values, *(value for value in ranked[MAX_FACET_VALUES:] if value in chosen)])
    return tuple(
        Facet(value_name, counts.get(value_name, 0), value_name in chosen) for value_name in values if value_name
    )


__all__ = [
    "PAGE_SIZE",
    "AppListPage",
    "AppListQuery",
    "AppRow",
    "CanSeeRow",
    "Facet",
    "build_app_list_page",
    "build_row",
    "read_query",
]
