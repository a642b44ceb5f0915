"""Checks that an applied configuration matches its shape, as far as field ownership needs it.

In: a document and its shape. Out: errors, worded as a Kubernetes server words them.
Never: checks values; `kube.schema` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from argosy.kube.objects.go_format import format_value
from argosy.kube.patch.fields_v1_path_elements import ElementError, item_path_element, render_element
from argosy.kube.patch.merge_schema_protocol import Shape


def find_schema_errors(document: Any, shape: Shape) -> list[str]:
    """Return one `.path: message` for each error."""
    return [f"{path}: {message}" if path else message for path, message in _find_errors(document, shape)]


def format_errors(errors: Sequence[str]) -> str:
    """Return a single error unchanged, and several errors as an indented list."""
    return errors[0] if len(errors) == 1 else "\n  ".join(["errors:", *errors])


def _find_errors(value: Any, shape: Shape | None) -> list[tuple[str, str]]:
    if value is None or shape is None or shape.kind == "untyped":
        return []
    match shape.kind:
        case "struct" | "map":
            if not isinstance(value, dict):
                return [("", f"expected map, got &{{{format_value(value)}}}")]
            return _find_map_errors(value, shape)
        case "list":
            if not isinstance(value, list):
                return [("", f"expected list, got &{{{format_value(value)}}}")]
            return _find_list_errors(value, shape)
    if isinstance(value, dict | list):
        return [("", f"expected any scalar, got &{{{format_value(value)}}}")]
    return []


def _find_map_errors(value: dict[str, Any], shape: Shape) -> list[tuple[str, str]]:
    errors: list[tuple[str, str]] = []
    for name, child in value.items():
        field = shape.field(name)
        if field is None and shape.kind == "struct":
            return [*errors, (f".{name}", "field not declared in schema")]
        errors += [(f".{name}{path}", message) for path, message in _find_errors(child, field)]
    return errors


def _find_list_errors(values: Sequence[Any], shape: Shape) -> list[tuple[str, str]]:
    errors: list[tuple[str, str]] = []
    seen: set[str] = set()
    items = shape.items()
    for index, value in enumerate(values):
        element = ""
        if shape.list_type != "atomic":
            try:
                element = item_path_element(value, shape)
            except ElementError as error:
                return [*errors, ("", f"element {index}: {error}")]
            if element in seen:
                errors.append(("", f"duplicate entries for key {render_element(element)}"))
            seen.add(element)
        if item_errors := _find_errors(value, items):
            item_path = render_element(element) if element else f"[{index}]"
            errors += [(item_path + path, message) for path, message in item_errors]
    return errors
