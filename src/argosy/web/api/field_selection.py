"""Field selection in responses: `fields=items.metadata.name,items.status`.

In: the parameter, a document. Out: the document with only those fields, or without them. Never: changes the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError

MOST: Final = 200  # paths
DEEPEST: Final = 30  # names per path
Names = dict[str, Any]  # tree of names; an empty tree selects everything below


@dataclass(frozen=True)
class Fields:
    """Selected fields. Lists are filtered item by item."""

    names: Mapping[str, Any]
    is_excluding: bool = False  # argo: a minus before the first path applies to all

    def of(self, document: Any) -> Any:
        return _without(document, self.names) if self.is_excluding else _only(document, self.names)


def read_fields(text: str) -> Fields | None:
    """Parse the parameter; None if all fields are selected."""
    is_excluding = text.startswith("-")
    paths = [path.strip().removeprefix("-") for path in text.split(",") if path.strip().removeprefix("-")]
    if not paths:
        return None
    if len(paths) > MOST or any(path.count(".") >= DEEPEST for path in paths):
        raise UserError(f"at most {MOST} paths of {DEEPEST} names are allowed", where="fields")
    found: Names = {}
    for path in paths:
        _add(found, path.split("."))
    return Fields(found, is_excluding)


def _add(names: Names, path: list[str]) -> None:
    """Add a path. A path below a selected one adds nothing."""
    first, *rest = path
    if first in names and not names[first]:
        return
    if not rest:
        names[first] = {}
        return
    _add(names.setdefault(first, {}), rest)


def _only(value: Any, names: Mapping[str, Any]) -> Any:
    if not names:
        return value
    if isinstance(value, list):
        return [_only(each, names) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {name: _only(value[name], below) for name, below in names.items() if name in value}


def _without(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_without(each, names) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _without(each, names[name]) if name in names else each
        for name, each in value.items()
        if name not in names or names[name]
    }
