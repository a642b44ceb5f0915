"""Prunes and defaults custom objects.

In: a manifest and its compiled schema. Out: the same object if nothing changed, else a copy of the changed parts.
Never: mutates its input; validates a value.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema.crd.compiled_schema import META_FIELDS, SchemaNode


def prune(value: Any, node: SchemaNode, path: str, unknown_paths: list[str]) -> Any:
    """Remove fields that the schema does not declare, adding their paths to `unknown_paths`, and nulls not allowed."""
    if isinstance(value, dict):
        return _prune_map(value, node, path, unknown_paths)
    if isinstance(value, list) and value:
        item = node.item
        if item is None:
            return value if node.preserves_unknown_fields else _prune_items(value, _EMPTY_NODE, path, unknown_paths)
        return _prune_items(value, item, path, unknown_paths)
    return value


_EMPTY_NODE = SchemaNode()


def _prune_items(value: list[Any], item: SchemaNode, path: str, unknown_paths: list[str]) -> list[Any]:
    changed: list[Any] | None = None
    for index, element in enumerate(value):
        if element.__class__ is dict or element.__class__ is list:
            kept = prune(element, item, f"{path}[{index}]", unknown_paths)
            if kept is not element:
                changed = changed or list(value)
                changed[index] = kept
    return changed or value


def _prune_map(value: dict[str, Any], node: SchemaNode, path: str, unknown_paths: list[str]) -> dict[str, Any]:
    changed: dict[str, Any] | None = None
    properties, additional = node.properties, node.additional_properties
    for name, field_value in value.items():
        child = properties.get(name, additional)
        if child is None:
            if node.preserves_unknown_fields:
                continue
            changed = dict(value) if changed is None else changed
            del changed[name]
            if path or name not in META_FIELDS:
                unknown_paths.append(f"{path}.{name}" if path else name)
        elif field_value is None:
            # k8s: a null that the schema does not allow is dropped, unless a default replaces it.
            if not child.nullable and child.default is None:
                changed = dict(value) if changed is None else changed
                del changed[name]
        elif field_value.__class__ is dict or field_value.__class__ is list:
            kept = prune(field_value, child, f"{path}.{name}" if path else name, unknown_paths)
            if kept is not field_value:
                changed = dict(value) if changed is None else changed
                changed[name] = kept
    return value if changed is None else changed


def apply_defaults(value: Any, node: SchemaNode) -> Any:
    """Apply the schema's defaults to fields that are absent, or null although not nullable."""
    if isinstance(value, dict):
        return _apply_map_defaults(value, node)
    if isinstance(value, list) and (item := node.item) is not None:
        return _apply_item_defaults(value, item)
    return value


def _apply_item_defaults(value: list[Any], item: SchemaNode) -> list[Any]:
    changed: list[Any] | None = None
    for index, element in enumerate(value):
        filled = item.default if element is None and not item.nullable else element
        filled = apply_defaults(filled, item) if item.has_defaults else filled
        if filled is not element:
            changed = changed or list(value)
            changed[index] = filled
    return changed or value


def _apply_map_defaults(value: dict[str, Any], node: SchemaNode) -> dict[str, Any]:
    filled = value
    for name, child in node.children_with_own_default:
        if name not in filled or (filled[name] is None and not child.nullable):
            filled = {**filled, name: child.default}
    for name, child in node.children_with_nested_defaults:
        if (field_value := filled.get(name)) is not None and (
            filled_value := apply_defaults(field_value, child)
        ) is not field_value:
            filled = {**filled, name: filled_value}
    additional = node.additional_properties
    if additional is not None and (additional.has_defaults or additional.default is not None):
        for name, field_value in value.items():
            if name in node.properties:
                continue
            filled_value = additional.default if field_value is None and not additional.nullable else field_value
            filled_value = apply_defaults(filled_value, additional)
            if filled_value is not field_value:
                filled = {**filled, name: filled_value}
    return filled
