"""Prunes and defaults custom objects.

In: a manifest and its compiled schema. Out: the same object if nothing changed, else a copy of the changed parts.
Never: mutates its input; validates a value.
"""

from __future__ import annotations

from typing import Any

from argosy.kube.schema.crd.compiled_schema import META_FIELDS, Node


def prune(value: Any, node: Node, path: str, unknown: list[str]) -> Any:
    """Remove fields that the schema does not declare, adding their paths to `unknown_paths`, and nulls not allowed."""
    if isinstance(value, dict):
        return _prune_map(value, node, path, unknown)
    if isinstance(value, list) and value:
        item = node.item
        if item is None:
            return value if node.preserve else _prune_items(value, _NOTHING, path, unknown)
        return _prune_items(value, item, path, unknown)
    return value


_NOTHING = Node()


def _prune_items(value: list[Any], item: Node, path: str, unknown: list[str]) -> list[Any]:
    changed: list[Any] | None = None
    for index, each in enumerate(value):
        if each.__class__ is dict or each.__class__ is list:
            kept = prune(each, item, f"{path}[{index}]", unknown)
            if kept is not each:
                changed = changed or list(value)
                changed[index] = kept
    return changed or value


def _prune_map(value: dict[str, Any], node: Node, path: str, unknown: list[str]) -> dict[str, Any]:
    changed: dict[str, Any] | None = None
    properties, additional = node.properties, node.additional
    for name, each in value.items():
        child = properties.get(name, additional)
        if child is None:
            if node.preserve:
                continue
            changed = dict(value) if changed is None else changed
            del changed[name]
            if path or name not in META_FIELDS:
                unknown.append(f"{path}.{name}" if path else name)
        elif each is None:
            # k8s: a null that the schema does not allow is dropped, unless a default replaces it.
            if not child.nullable and child.default is None:
                changed = dict(value) if changed is None else changed
                del changed[name]
        elif each.__class__ is dict or each.__class__ is list:
            kept = prune(each, child, f"{path}.{name}" if path else name, unknown)
            if kept is not each:
                changed = dict(value) if changed is None else changed
                changed[name] = kept
    return value if changed is None else changed


def fill(value: Any, node: Node) -> Any:
    """Apply the schema's defaults to fields that are absent, or null although not nullable."""
    if isinstance(value, dict):
        return _fill_map(value, node)
    if isinstance(value, list) and (item := node.item) is not None:
        return _fill_items(value, item)
    return value


def _fill_items(value: list[Any], item: Node) -> list[Any]:
    changed: list[Any] | None = None
    for index, each in enumerate(value):
        filled = item.default if each is None and not item.nullable else each
        filled = fill(filled, item) if item.has_defaults else filled
        if filled is not each:
            changed = changed or list(value)
            changed[index] = filled
    return changed or value


def _fill_map(value: dict[str, Any], node: Node) -> dict[str, Any]:
    filled = value
    for name, child in node.defaulted:
        if name not in filled or (filled[name] is None and not child.nullable):
            filled = {**filled, name: child.default}
    for name, child in node.deep:
        if (each := filled.get(name)) is not None and (done := fill(each, child)) is not each:
            filled = {**filled, name: done}
    additional = node.additional
    if additional is not None and (additional.has_defaults or additional.default is not None):
        for name, each in value.items():
            if name in node.properties:
                continue
            done = additional.default if each is None and not additional.nullable else each
            done = fill(done, additional)
            if done is not each:
                filled = {**filled, name: done}
    return filled
