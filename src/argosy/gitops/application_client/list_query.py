"""The query of the Application list, as in the URL.

In: the pairs of a query string. Out: Query, and back. Never: drops an unknown value silently: it is reported, and the
other values count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from argosy.errors import UserError
from argosy.gitops.application import Progress
from argosy.gitops.application.step_results import Health
from argosy.gitops.application_client.app_row import NO_OPERATION
from argosy.kube.schema.selectors import labels as read_labels

SYNC_WORDS: Final = ("Synced", "OutOfSync", "Unknown")
HEALTH_WORDS: Final = tuple(each.value for each in Health)
OPERATION_WORDS: Final = (*(each.value for each in Progress), NO_OPERATION)
AUTOSYNC_WORDS: Final = ("auto", "manual")
VIEWS: Final = ("list", "tiles", "summary")
SORTS: Final = ("name", "ns", "project", "env", "sync", "health", "op", "rev", "repo", "cluster", "created", "synced")
PAGE_SIZE: Final = 50
_KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "sync": SYNC_WORDS, "health": HEALTH_WORDS, "op": OPERATION_WORDS, "autosync": AUTOSYNC_WORDS,
}  # fmt: skip
_LISTS: Final = ("sync", "health", "env", "project", "label", "cluster", "ns", "repo", "rev", "autosync", "op")
_FLAGS: Final = ("fav", "held")
_YES: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": None}
_OTHER_WORDS: Final = {"enabled": "auto", "true": "auto", "disabled": "manual", "false": "manual"}
LONGEST: Final = 256  # characters per value
MOST: Final = 100  # values


@dataclass(frozen=True)
class Query:
    """Values of one filter are alternatives; filters are combined with AND, and so are labels (argo)."""

    q: str = ""
    sync: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    label: tuple[str, ...] = ()  # each a label selector
    cluster: tuple[str, ...] = ()
    ns: tuple[str, ...] = ()  # argo: destination namespace
    repo: tuple[str, ...] = ()
    rev: tuple[str, ...] = ()  # the tracked ref
    autosync: tuple[str, ...] = ()
    op: tuple[str, ...] = ()
    fav: bool | None = None
    held: bool | None = None
    sort: str = "name"  # prefix `-` reverses it
    page: int = 1
    view: str = VIEWS[0]
    told: tuple[str, ...] = ()  # errors of values that were ignored

    def text(self, **changes: Any) -> str:
        """Build the query string with these changes; a change of filters leads to the first page."""
        if changes and "page" not in changes:
            changes["page"] = 1
        found, plain = replace(self, **changes), Query()
        pairs: list[tuple[str, str]] = [("view", found.view)] if found.view != plain.view else []
        pairs += [("q", found.q)] if found.q else []
        pairs += [(name, value) for name in _LISTS for value in getattr(found, name)]
        pairs += [(name, "1" if value else "0") for name in _FLAGS if (value := getattr(found, name)) is not None]
        pairs += [("sort", found.sort)] if found.sort != plain.sort else []
        pairs += [("page", str(found.page))] if found.page != 1 else []
        return urlencode(pairs)

    def toggled(self, name: str, value: str) -> str:
        """Build the query string with this value of a filter added, or removed if it was there."""
        there = getattr(self, name)
        left = tuple(each for each in there if each != value)
        return self.text(**{name: left if value in there else (*there, value)})

    @property
    def chips(self) -> list[tuple[str, str, str]]:
        """List every active filter: name, value, and the query string without it."""
        found = [(name, value, self.toggled(name, value)) for name in _LISTS for value in getattr(self, name)]
        found += [
            (name, "yes" if value else "no", self.text(**{name: None}))
            for name in _FLAGS
            if (value := getattr(self, name)) is not None
        ]
        return [*([("q", self.q, self.text(q=""))] if self.q else []), *found]

    @property
    def cleared(self) -> str:
        """Build the query string without filters."""
        return Query(view=self.view, sort=self.sort).text()

    @property
    def is_filtered(self) -> bool:
        return bool(self.q) or any(getattr(self, name) for name in _LISTS) or (self.fav, self.held) != (None, None)


def read_query(asked: str | Iterable[tuple[str, str]]) -> Query:
    """Parse a query; unknown names are ignored, because other parts of the page use them."""
    pairs = parse_qsl(asked, max_num_fields=1000) if isinstance(asked, str) else asked
    values: dict[str, Any] = {}
    told: list[str] = []
    for name, raw in pairs:
        value = raw.strip()
        if len(value) > LONGEST:
            told.append(f"{name}: longer than {LONGEST} characters")
        elif name in _LISTS:
            parts = [value] if name in ("label", "repo") else value.split(",")
            _add(values, told, name, [part.strip() for part in parts if part.strip()])
        elif name in _FLAGS or name in ("q", "sort", "page", "view"):
            _set(values, told, name, value)
    given: dict[str, Any] = {
        name: tuple(dict.fromkeys(each)) if isinstance(each, list) else each for name, each in values.items()
    }
    return Query(**given, told=tuple(told))


def _add(values: dict[str, Any], told: list[str], name: str, parts: list[str]) -> None:
    there = values.setdefault(name, [])
    for part in parts:
        value = _spelled(name, part)
        fault = _fault(name, value)
        if fault:
            told.append(fault)
        elif len(there) < MOST:
            there.append(value)


def _spelled(name: str, part: str) -> str:
    """Normalize the case of predefined words."""
    if name == "autosync":
        part = _OTHER_WORDS.get(part.lower(), part)
    return next((word for word in _KNOWN.get(name, ()) if word.lower() == part.lower()), part)


def _fault(name: str, value: str) -> str:
    known = _KNOWN.get(name)
    if known is not None and value not in known:
        return f"{name}: unknown value {value!r}; choose one of {', '.join(known)}"
    if name == "label":
        try:
            read_labels(value)
        except UserError as error:
            return f"label: {value!r} is not a label selector: {error}"
    return ""


def _set(values: dict[str, Any], told: list[str], name: str, value: str) -> None:
    if name == "q":
        values[name] = value
    elif name in _FLAGS:
        if value.lower() in _YES:
            values[name] = _YES[value.lower()]
        else:
            told.append(f"{name}: invalid value {value!r}; use 1 or 0")
    elif name == "page":
        if value.isdecimal() and 0 < int(value) < 10**6:
            values[name] = int(value)
        elif value:
            told.append(f"page: invalid page {value!r}; the first page is shown")
    else:
        known = VIEWS if name == "view" else SORTS
        if value.removeprefix("-" if name == "sort" else "") in known:
            values[name] = value
        elif value:
            told.append(f"{name}: unknown value {value!r}; choose one of {', '.join(known)}")
