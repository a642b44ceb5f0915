"""Merges an applied configuration into a live document, and removes fields from a document.

In: documents, their shape, trees of field paths. Out: new documents that share unchanged parts.
Never: mutates a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.kube.patch.changed_field_path_trees import EMPTIED, field_shape, is_granular_map, is_keyed_list
from argosy.kube.patch.field_sets import Tree, is_member
from argosy.kube.patch.fields_v1_path_elements import ElementError, item_path_element
from argosy.kube.patch.merge_schema_protocol import Shape

_ABSENT: Final = object()


def merge(live: Any, applied: Any, shape: Shape | None) -> Any:
    """Set every leaf of `applied` in `live`. An empty or null container in `applied` removes nothing."""
    if is_granular_map(shape) and (isinstance(applied, dict) or applied is None):
        return _merge_maps(live, applied, shape) if isinstance(live, dict) and live else applied
    if shape is not None and is_keyed_list(shape) and (isinstance(applied, list) or applied is None):
        if not isinstance(live, list) or not live:
            return applied
        return _merge_lists(live, applied, shape) if applied else live
    return applied


def _merge_maps(live: dict[str, Any], applied: dict[str, Any] | None, shape: Shape | None) -> dict[str, Any]:
    if not applied:
        return live
    merged = dict(live)
    for name, value in applied.items():
        if isinstance(value, dict | list) and name in live:
            merged[name] = merge(live[name], value, field_shape(shape, name))
        elif value is None and isinstance(live.get(name), dict | list):
            merged[name] = merge(live[name], None, field_shape(shape, name))
        else:
            merged[name] = value
    return merged


def _path_elements_of_items(values: Sequence[Any], shape: Shape) -> list[str]:
    elements: list[str] = []
    for value in values:
        try:
            elements.append(item_path_element(value, shape))
        except ElementError:
            elements.append("")
    return elements


def _merge_lists(live: Sequence[Any], applied: Sequence[Any], shape: Shape) -> list[Any]:
    """k8s: shared items take the order of `applied`; live-only items keep their position between shared items."""
    live_elements, applied_elements = _path_elements_of_items(live, shape), _path_elements_of_items(applied, shape)
    live_by_element = _index_items_by_element(live_elements, live)
    applied_by_element = dict(zip(applied_elements, applied))
    shared = iter([element for element in applied_elements if element in live_by_element])
    next_shared = next(shared, None)
    merged: list[Any] = []
    done: set[str] = set()
    items = shape.items()
    i = j = 0
    while i < len(live_elements) or j < len(applied_elements):
        if i < len(live_elements) and j < len(applied_elements):
            if live_elements[i] == applied_elements[j]:
                done.add(live_elements[i])
                merged.append(merge(live_by_element[live_elements[i]], applied_by_element[live_elements[i]], items))
                i, j = i + 1, j + 1
                next_shared = next(shared, None)
                continue
            if live_elements[i] in applied_by_element and next_shared is not None and next_shared != live_elements[i]:
                i += 1
                continue
        if i < len(live_elements):
            if live_elements[i] not in applied_by_element:
                merged.append(live[i])
                i += 1
                continue
            if live_elements[i] in done:
                i += 1
        if j < len(applied_elements):
            done.add(applied_elements[j])
            live_item = live_by_element.get(applied_elements[j], _ABSENT)
            merged.append(applied[j] if live_item is _ABSENT else merge(live_item, applied[j], items))
            if next_shared == applied_elements[j]:
                next_shared = next(shared, None)
            j += 1
    return merged


def _index_items_by_element(elements: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """Index items by path element. k8s: items with a repeated key are not merged, so they count as null."""
    items_by_element: dict[str, Any] = {}
    for element, value in zip(elements, values):
        items_by_element[element] = None if element in items_by_element else value
    return items_by_element


def remove(document: Any, tree: Tree, shape: Shape | None) -> Any:
    """Remove the tree's members from the document; a container that becomes empty is replaced by EMPTIED."""
    if isinstance(document, dict) and is_granular_map(shape):
        return _remove_from_map(document, tree, shape) or EMPTIED
    if isinstance(document, list) and shape is not None and is_keyed_list(shape):
        return _remove_from_list(document, tree, shape) or EMPTIED
    return document if not isinstance(document, dict | list) else EMPTIED


def drop_emptied(document: Any) -> Any:
    """Return the document without its EMPTIED parts."""
    if isinstance(document, dict):
        return {name: drop_emptied(value) for name, value in document.items() if value is not EMPTIED}
    if isinstance(document, list):
        return [drop_emptied(value) for value in document if value is not EMPTIED]
    return document


def _remove_from_map(document: dict[str, Any], tree: Tree, shape: Shape | None) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in document.items():
        node = tree.get("f:" + name)
        if node is None:
            kept[name] = value
        elif not is_member(node):
            kept[name] = remove(value, node, field_shape(shape, name))
    return kept


def _remove_from_list(values: Sequence[Any], tree: Tree, shape: Shape) -> list[Any]:
    kept: list[Any] = []
    items = shape.items()
    for value, element in zip(values, _path_elements_of_items(values, shape)):
        node = tree.get(element)
        if node is None:
            kept.append(value)
        elif not is_member(node):
            kept.append(remove(value, node, items))
    return kept
