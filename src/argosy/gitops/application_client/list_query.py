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
from argosy.gitops.application import OperationPhase
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.application_client.app_row import NO_OPERATION
from argosy.kube.schema.selectors import parse_label_selector as read_labels

SYNC_WORDS: Final = ("Synced", "OutOfSync", "Unknown")
HEALTH_WORDS: Final = tuple(status.value for status in HealthStatus)
OPERATION_WORDS: Final = (*(status.value for status in OperationPhase), NO_OPERATION)
AUTOSYNC_WORDS: Final = ("auto", "manual")
VIEWS: Final = ("list", "tiles", "summary")
SORTS: Final = ("name", "ns", "project", "env", "sync", "health", "op", "rev", "repo", "cluster", "created", "synced")
PAGE_SIZE: Final = 50
_PREDEFINED_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "sync": SYNC_WORDS, "health": HEALTH_WORDS, "op": OPERATION_WORDS, "autosync": AUTOSYNC_WORDS,
}  # fmt: skip
_LIST_FILTERS: Final = ("sync", "health", "env", "project", "label", "cluster", "ns", "repo", "rev", "autosync", "op")
_FLAG_FILTERS: Final = ("fav", "held")
_FLAG_VALUES: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": None}
_AUTOSYNC_SYNONYMS: Final = {"enabled": "auto", "true": "auto", "disabled": "manual", "false": "manual"}
MAX_VALUE_CHARACTERS: Final = 256  # characters per value
MAX_VALUES_PER_FILTER: Final = 100  # values


@dataclass(frozen=True)
class AppListQuery:
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
        changed, default = replace(self, **changes), AppListQuery()
        pairs: list[tuple[str, str]] = [("view", changed.view)] if changed.view != default.view else []
        pairs += [("q", changed.q)] if changed.q else []
        pairs += [(name, value) for name in _LIST_FILTERS for value in getattr(changed, name)]
        pairs += [
            (name, "1" if value else "0") for name in _FLAG_FILTERS if (value := getattr(changed, name)) is not None
        ]
        pairs += [("sort", changed.sort)] if changed.sort != default.sort else []
        pairs += [("page", str(changed.page))] if changed.page != 1 else []
        return urlencode(pairs)

    def toggled(self, name: str, value: str) -> str:
        """Build the query string with this value of a filter added, or removed if it was there."""
        current = getattr(self, name)
        remaining = tuple(item for item in current if item != value)
        return self.text(**{name: remaining if value in current else (*current, value)})

    @property
    def chips(self) -> list[tuple[str, str, str]]:
        """List every active filter: name, value, and the query string without it."""
        chips = [(name, value, self.toggled(name, value)) for name in _LIST_FILTERS for value in getattr(self, name)]
        chips += [
            (name, "yes" if value else "no", self.text(**{name: None}))
            for name in _FLAG_FILTERS
            if (value := getattr(self, name)) is not None
        ]
        return [*([("q", self.q, self.text(q=""))] if self.q else []), *chips]

    @property
    def cleared(self) -> str:
        """Build the query string without filters."""
        return AppListQuery(view=self.view, sort=self.sort).text()

    @property
    def is_filtered(self) -> bool:
        return (
            bool(self.q) or any(getattr(self, name) for name in _LIST_FILTERS) or (self.fav, self.held) != (None, None)
        )


def read_query(query_string: str | Iterable[tuple[str, str]]) -> AppListQuery:
    """Parse a query; unknown names are ignored, because other parts of the page use them."""
    pairs = parse_qsl(query_string, max_num_fields=1000) if isinstance(query_string, str) else query_string
    values: dict[str, Any] = {}
    errors: list[str] = []
    for name, raw in pairs:
        value = raw.strip()
        if len(value) > MAX_VALUE_CHARACTERS:
            errors.append(f"{name}: longer than {MAX_VALUE_CHARACTERS} characters")
        elif name in _LIST_FILTERS:
            parts = [value] if name in ("label", "repo") else value.split(",")
            _add_filter_values(values, errors, name, [part.strip() for part in parts if part.strip()])
        elif name in _FLAG_FILTERS or name in ("q", "sort", "page", "view"):
            _set_single_value(values, errors, name, value)
    fields: dict[str, Any] = {
        name: tuple(dict.fromkeys(item)) if isinstance(item, list) else item for name, item in values.items()
    }
    return AppListQuery(**fields, told=tuple(errors))


def _add_filter_values(values: dict[str, Any], errors: list[str], name: str, parts: list[str]) -> None:
    current = values.setdefault(name, [])
    for part in parts:
        value = _normalize_word(name, part)
        fault = _find_value_error(name, value)
        if fault:
            errors.append(fault)
        elif len(current) < MAX_VALUES_PER_FILTER:
            current.append(value)


def _normalize_word(name: str, part: str) -> str:
    """Normalize the case of predefined words."""
    if name == "autosync":
        part = _AUTOSYNC_SYNONYMS.get(part.lower(), part)
    return next((word for word in _PREDEFINED_VALUES.get(name, ()) if word.lower() == part.lower()), part)


def _find_value_error(name: str, value: str) -> str:
    predefined = _PREDEFINED_VALUES.get(name)
    if predefined is not None and value not in predefined:
        return f"{name}: unknown value {value!r}; choose one of {', '.join(predefined)}"
    if name == "label":
        try:
            read_labels(value)
        except UserError as error:
            return f"label: {value!r} is not a label selector: {error}"
    return ""


def _set_single_value(values: dict[str, Any], errors: list[str], name: str, value: str) -> None:
    if name == "q":
        values[name] = value
    elif name in _FLAG_FILTERS:
        if value.lower() in _FLAG_VALUES:
            values[name] = _FLAG_VALUES[value.lower()]
        else:
            errors.append(f"{name}: invalid value {value!r}; use 1 or 0")
    elif name == "page":
        if value.isdecimal() and 0 < int(value) < 10**6:
            values[name] = int(value)
        elif value:
            errors.append(f"page: invalid page {value!r}; the first page is shown")
    else:
        choices = VIEWS if name == "view" else SORTS
        if value.removeprefix("-" if name == "sort" else "") in choices:
            values[name] = value
        elif value:
            errors.append(f"{name}: unknown value {value!r}; choose one of {', '.join(choices)}")
