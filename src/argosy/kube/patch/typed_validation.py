"""Checks that an applied configuration matches its shape, as far as field ownership needs it.

In: a document and its shape. Out: errors, worded as a Kubernetes server words them.
Never: checks values; `kube.schema` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.kube.patch.go_format import show
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.path_elements import ElementError, element_of, readable


def faults(document: Any, shape: Shape) -> list[str]:
    """Return one `.path: message` for each error."""
    return [f"{path}: {what}" if path else what for path, what in _faults(document, shape)]


def summary(found: Sequence[str]) -> str:
    """Return a single error unchanged, and several errors as an indented list."""
    return found[0] if len(found) == 1 else "\n  ".join(["errors:", *found])


def _faults(value: Any, shape: Shape | None) -> list[tuple[str, str]]:
    if value is None or shape is None or shape.kind == "untyped":
        return []
    match shape.kind:
        case "struct" | "map":
            if not isinstance(value, dict):
                return [("", f"expected map, got &{{{show(value)}}}")]
            return _map_faults(value, shape)
        case "list":
            if not isinstance(value, list):
                return [("", f"expected list, got &{{{show(value)}}}")]
            return _list_faults(value, shape)
    if isinstance(value, dict | list):
        return [("", f"expected any scalar, got &{{{show(value)}}}")]
    return []


def _map_faults(value: dict[str, Any], shape: Shape) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, child in value.items():
        field = shape.field(name)
        if field is None and shape.kind == "struct":
            return [*found, (f".{name}", "field not declared in schema")]
        found += [(f".{name}{path}", what) for path, what in _faults(child, field)]
    return found


def _list_faults(values: Sequence[Any], shape: Shape) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    items = shape.items()
    for index, value in enumerate(values):
        element = ""
        if shape.list_type != "atomic":
            try:
                element = element_of(value, shape)
            except ElementError as error:
                return [*found, ("", f"element {index}: {error}")]
            if element in seen:
                found.append(("", f"duplicate entries for key {readable(element)}"))
            seen.add(element)
        if below := _faults(value, items):
            step = readable(element) if element else f"[{index}]"
            found += [(step + path, what) for path, what in below]
    return found
