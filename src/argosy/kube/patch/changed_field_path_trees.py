"""Trees of field paths: the fields of a document, and the fields that differ between two documents.

In: documents and their shape. Out: trees (see `field_sets`). Never: raises for a value that does not match its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from argosy.kube.patch.field_sets import LEAF, Tree, sort_elements, union
from argosy.kube.patch.fields_v1_path_elements import SELF, ElementError, item_path_element
from argosy.kube.patch.merge_schema_protocol import Shape

# Replaces a container that became empty. k8s: it is a null, which still is a field, so its owner keeps owning it.
EMPTIED: Final = object()

_CONTAINERS: Final = (dict, list)


class FieldComparison(NamedTuple):
    """`changed`: fields that were added or have another value; `removed`: fields that are gone."""

    changed: Tree
    removed: Tree


def compare(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> FieldComparison:
    return FieldComparison(*_compare_maps(old, new, shape))


def field_shape(shape: Shape | None, name: str) -> Shape | None:
    """Return the shape of a field. None means free-form JSON: its maps are granular, its lists atomic."""
    return None if shape is None or shape.kind == "untyped" else shape.field(name)


def is_map(shape: Shape | None) -> bool:
    return shape is None or shape.kind in ("struct", "map", "untyped")


def is_keyed_list(shape: Shape | None) -> bool:
    """True if each item of this list has its own owner (list type `map` or `set`)."""
    return shape is not None and shape.kind == "list" and shape.list_type != "atomic"


def is_granular_map(shape: Shape | None) -> bool:
    return shape is None or (shape.kind in ("struct", "map", "untyped") and not shape.atomic)


def build_full_tree(value: Any, shape: Shape | None) -> Tree:
    """Build the node of a value that was added or removed as a whole: every field and every parent of a field."""
    if not value or not isinstance(value, _CONTAINERS):
        return LEAF
    if isinstance(value, dict):
        if not is_granular_map(shape):
            return LEAF
        node: Tree = {SELF: LEAF}
        for name, child in value.items():
            is_leaf = not child or not isinstance(child, _CONTAINERS)
            node["f:" + name] = LEAF if is_leaf else build_full_tree(child, field_shape(shape, name))
        return sort_elements(node)
    if shape is None or not is_keyed_list(shape):
        return LEAF
    node = {SELF: LEAF}
    items = shape.items()
    for element, duplicates in _group_items_by_element(value, shape).items():
        node[element] = build_full_tree(duplicates[0], items) if len(duplicates) == 1 else LEAF
    return sort_elements(node)


def _group_items_by_element(values: Sequence[Any], shape: Shape) -> dict[str, list[Any]]:
    """Group items by path element; a repeated key has several items. Items without a key are skipped."""
    items_by_element: dict[str, list[Any]] = {}
    for value in values:
        try:
            items_by_element.setdefault(item_path_element(value, shape), []).append(value)
        except ElementError:
            continue
    return items_by_element


def _compare_maps(old: dict[str, Any], new: dict[str, Any], shape: Shape | None) -> tuple[Tree, Tree]:
    changed: Tree = {}
    removed: Tree = {}
    for name, value in new.items():
        if name not in old:
            is_leaf = not value or not isinstance(value, _CONTAINERS)
            changed["f:" + name] = LEAF if is_leaf else build_full_tree(value, field_shape(shape, name))
            continue
        old_value = old[name]
        if old_value is value or (old_value == value and isinstance(old_value, bool) is isinstance(value, bool)):
            continue
        if not isinstance(value, _CONTAINERS) and not isinstance(old_value, _CONTAINERS):
            changed["f:" + name] = LEAF
            continue
        _record_difference(changed, removed, "f:" + name, old_value, value, field_shape(shape, name))
    for name, value in old.items():
        if name not in new:
            is_leaf = not value or not isinstance(value, _CONTAINERS)
            removed["f:" + name] = LEAF if is_leaf else build_full_tree(value, field_shape(shape, name))
    return sort_elements(changed), sort_elements(removed)


def _record_difference(changed: Tree, removed: Tree, element: str, old: Any, new: Any, shape: Shape | None) -> None:
    changed_node, removed_node = _compare_values(old, new, shape)
    if changed_node is not None:
        changed[element] = changed_node
    if removed_node is not None:
        removed[element] = removed_node


def _compare_values(old: Any, new: Any, shape: Shape | None) -> tuple[Tree | None, Tree | None]:
    """Return the changed and the removed node of a value that exists in both documents and differs."""
    if is_granular_map(shape) and (isinstance(old, dict) or isinstance(new, dict)):
        old_map = old if isinstance(old, dict) else {}
        new_map = new if isinstance(new, dict) else {}
        if not old_map and not new_map:
            return LEAF, None  # k8s: null, {} and absent are three different values
        changed, removed = _compare_maps(old_map, new_map, shape)
        are_maps = all(value is None or value is EMPTIED or isinstance(value, dict) for value in (old, new))
        if not are_maps:  # free-form JSON became a map or ceased to be one: the field itself changed too
            return {SELF: LEAF, **changed} if changed else LEAF, removed or None
        return changed or None, removed or None
    if shape is not None and is_keyed_list(shape):
        before_items = old if isinstance(old, list) else []
        after_items = new if isinstance(new, list) else []
        if before_items or after_items:
            changed, removed = _compare_lists(before_items, after_items, shape)
            return changed or None, removed or None
    return LEAF, None


def _compare_lists(old: Sequence[Any], new: Sequence[Any], shape: Shape) -> tuple[Tree, Tree]:
    old_by_element, new_by_element = _group_items_by_element(old, shape), _group_items_by_element(new, shape)
    changed: Tree = {}
    removed: Tree = {}
    items = shape.items()
    for element in old_by_element | new_by_element:
        old_items, new_items = old_by_element.get(element, []), new_by_element.get(element, [])
        if len(old_items) > 1 or len(new_items) > 1:
            _record_repeated_items(changed, removed, element, old_items, new_items, items)
        elif not old_items:
            changed[element] = build_full_tree(new_items[0], items)
        elif not new_items:
            removed[element] = build_full_tree(old_items[0], items)
        elif old_items[0] != new_items[0]:
            _record_difference(changed, removed, element, old_items[0], new_items[0], items)
    return sort_elements(changed), sort_elements(removed)


def _record_repeated_items(
    changed: Tree, removed: Tree, element: str, old: Sequence[Any], new: Sequence[Any], item_shape: Shape
) -> None:
    """k8s: items with a repeated key are one atomic field."""
    if len(old) > 1 and len(new) > 1:
        if list(old) != list(new):
            changed[element] = LEAF
    elif len(old) > 1:
        if new:
            changed[element] = build_full_tree(new[0], item_shape)
        removed[element] = LEAF
    else:
        if old:
            removed[element] = build_full_tree(old[0], item_shape)
        changed[element] = LEAF


def build_owned_tree(document: dict[str, Any], shape: Shape) -> Tree:
    """Build the tree of fields that an applied configuration sets: leaves, list items and map entries, not parents."""
    return _owned_node(document, shape) or LEAF


def _owned_node(value: Any, shape: Shape | None) -> Tree | None:
    """Return the node of a value, None if it sets no field."""
    if isinstance(value, dict) and is_map(shape):
        return _owned_map(value, shape) if is_granular_map(shape) else LEAF
    if shape is not None and is_keyed_list(shape):
        return _owned_list(value, shape) if isinstance(value, list) else None
    if value is None and shape is not None and shape.kind in ("struct", "map") and not shape.atomic:
        return None
    return LEAF


def _owned_map(value: dict[str, Any], shape: Shape | None) -> Tree | None:
    is_struct = shape is not None and shape.kind == "struct"
    node: Tree = {}
    for name, child in value.items():
        if not isinstance(child, _CONTAINERS) or child == {}:
            node["f:" + name] = LEAF
            continue
        child_node = _owned_node(child, field_shape(shape, name))
        if not is_struct:
            child_node = union({SELF: LEAF}, child_node) if child_node else LEAF
        if child_node is not None:
            node["f:" + name] = child_node
    return sort_elements(node) or None


def _owned_list(values: Sequence[Any], shape: Shape) -> Tree | None:
    node: Tree = {}
    items = shape.items()
    for element, duplicates in _group_items_by_element(values, shape).items():
        item_node = _owned_node(duplicates[0], items) if len(duplicates) == 1 else None
        node[element] = union({SELF: LEAF}, item_node) if item_node else LEAF
    return sort_elements(node) or None


def add_declared_parents(tree: Tree, shape: Shape | None) -> Tree:
    """Add every declared field that has members below it. k8s: map keys and list items are not added."""
    extended: Tree = {}
    for element, node in tree.items():
        if not node:
            extended[element] = node
            continue
        child_shape, is_declared = _child_shape(element, shape)
        child_tree = add_declared_parents(node, child_shape)
        extended[element] = {SELF: LEAF, **child_tree} if is_declared and SELF not in child_tree else child_tree
    return extended


def fit_tree_to_shape(tree: Tree, shape: Shape | None) -> Tree:
    """Own a field as a whole if it became atomic after the tree was written."""
    result = tree
    for element, node in tree.items():
        if not node:
            continue
        child_shape, _ = _child_shape(element, shape)
        if child_shape is None or child_shape.kind in ("untyped", "scalar"):
            continue
        is_atomic = child_shape.list_type == "atomic" if child_shape.kind == "list" else child_shape.atomic
        fitted_node = LEAF if is_atomic else fit_tree_to_shape(node, child_shape)
        if fitted_node is not node:
            result = dict(tree) if result is tree else result  # copy once: a copy per element would be quadratic
            result[element] = fitted_node
    return result


def _child_shape(element: str, shape: Shape | None) -> tuple[Shape | None, bool]:
    if element.startswith("f:"):
        child = field_shape(shape, element[2:])
        return child, child is not None and shape is not None and shape.kind == "struct"
    if element.startswith("k:") and shape is not None and shape.kind == "list":
        return shape.items(), False
    return None, False
