"""Field selection in responses: `fields=items.metadata.name,items.status`.

In: the parameter, a document. Out: the document with only those fields, or without them. Never: changes the input.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import UserError

MAX_PATHS: Final = 200  # paths
MAX_PATH_NAMES: Final = 30  # names per path
NameTree = dict[str, Any]  # tree of names; an empty tree selects everything below


@dataclass(frozen=True)
class FieldSelection:
    """Selected fields. Lists are filtered item by item."""

    names: Mapping[str, Any]
    is_excluding: bool = False  # argo: a minus before the first path applies to all

    def apply(self, document: Any) -> Any:
        return _drop_fields(document, self.names) if self.is_excluding else _keep_fields(document, self.names)


def parse_field_selection(text: str) -> FieldSelection | None:
    """Parse the parameter; None if all fields are selected."""
    is_excluding = text.startswith("-")
    paths = [path.strip().removeprefix("-") for path in text.split(",") if path.strip().removeprefix("-")]
    if not paths:
        return None
    if len(paths) > MAX_PATHS or any(path.count(".") >= MAX_PATH_NAMES for path in paths):
        raise UserError(f"at most {MAX_PATHS} paths of {MAX_PATH_NAMES} names are allowed", where="fields")
    tree: NameTree = {}
    for path in paths:
        _add_path(tree, path.split("."))
    return FieldSelection(tree, is_excluding)


def _add_path(names: NameTree, path: list[str]) -> None:
    """Add a path. A path below a selected one adds nothing."""
    first, *remaining = path
    if first in names and not names[first]:
        return
    if not remaining:
        names[first] = {}
        return
    _add_path(names.setdefault(first, {}), remaining)


def _keep_fields(value: Any, names: Mapping[str, Any]) -> Any:
    if not names:
        return value
    if isinstance(value, list):
        return [_keep_fields(item, names) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {name: _keep_fields(value[name], below) for name, below in names.items() if name in value}


def _drop_fields(value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_drop_fields(item, names) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: _drop_fields(item, names[name]) if name in names else item
        for name, item in value.items()
        if name not in names or names[name]
    }
