"""Trees of field paths: the fields of a document, and the fields that differ between two documents.

In: documents and their shape. Out: trees (see `field_sets`). Never: raises for a value that does not match its shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from argosy.kube.patch.field_sets import LEAF, Tree, in_order, union
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.path_elements import SELF, ElementError, element_of

# Replaces a container that became empty. k8s: it is a null, which still is a field, so its owner keeps owning it.
EMPTIED: Final = object()

_CONTAINERS: Final = (dict, list)


class Comparison(NamedTuple):
    """`changed`: fields that were added or have another value; `removed`: fields that are gone."""

    changed: Tree
    removed: Tree


def compare(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> Comparison:
    return Comparison(*_compare_maps(old, new, shape))


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


def everything(value: Any, shape: Shape | None) -> Tree:
    """Build the node of a value that was added or removed as a whole: every field and every parent of a field."""
    if not value or not isinstance(value, _CONTAINERS):
        return LEAF
    if isinstance(value, dict):
        if not is_granular_map(shape):
            return LEAF
        node: Tree = {SELF: LEAF}
        for name, child in value.items():
            scalar = not child or not isinstance(child, _CONTAINERS)
            node["f:" + name] = LEAF if scalar else everything(child, field_shape(shape, name))
        return in_order(node)
    if shape is None or not is_keyed_list(shape):
        return LEAF
    node = {SELF: LEAF}
    items = shape.items()
    for element, same in _by_element(value, shape).items():
        node[element] = everything(same[0], items) if len(same) == 1 else LEAF
    return in_order(node)


def _by_element(values: Sequence[Any], shape: Shape) -> dict[str, list[Any]]:
    """Group items by path element; a repeated key has several items. Items without a key are skipped."""
    found: dict[str, list[Any]] = {}
    for value in values:
        try:
            found.setdefault(element_of(value, shape), []).append(value)
        except ElementError:
            continue
    return found


def _compare_maps(old: dict[str, Any], new: dict[str, Any], shape: Shape | None) -> tuple[Tree, Tree]:
    changed: Tree = {}
    removed: Tree = {}
    for name, value in new.items():
        if name not in old:
            scalar = not value or not isinstance(value, _CONTAINERS)
            changed["f:" + name] = LEAF if scalar else everything(value, field_shape(shape, name))
            continue
        before = old[name]
        if before is value or (before == value and isinstance(before, bool) is isinstance(value, bool)):
            continue
        if not isinstance(value, _CONTAINERS) and not isinstance(before, _CONTAINERS):
            changed["f:" + name] = LEAF
            continue
        _note(changed, removed, "f:" + name, before, value, field_shape(shape, name))
    for name, value in old.items():
        if name not in new:
            scalar = not value or not isinstance(value, _CONTAINERS)
            removed["f:" + name] = LEAF if scalar else everything(value, field_shape(shape, name))
    return in_order(changed), in_order(removed)


def _note(changed: Tree, removed: Tree, element: str, old: Any, new: Any, shape: Shape | None) -> None:
    more, less = _compare(old, new, shape)
    if more is not None:
        changed[element] = more
    if less is not None:
        removed[element] = less


def _compare(old: Any, new: Any, shape: Shape | None) -> tuple[Tree | None, Tree | None]:
    """Return the changed and the removed node of a value that exists in both documents and differs."""
    if is_granular_map(shape) and (isinstance(old, dict) or isinstance(new, dict)):
        before = old if isinstance(old, dict) else {}
        after = new if isinstance(new, dict) else {}
        if not before and not after:
            return LEAF, None  # k8s: null, {} and absent are three different values
        changed, removed = _compare_maps(before, after, shape)
        fits = all(value is None or value is EMPTIED or isinstance(value, dict) for value in (old, new))
        if not fits:  # free-form JSON became a map or ceased to be one: the field itself changed too
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
    before, after = _by_element(old, shape), _by_element(new, shape)
    changed: Tree = {}
    removed: Tree = {}
    items = shape.items()
    for element in before | after:
        mine, theirs = before.get(element, []), after.get(element, [])
        if len(mine) > 1 or len(theirs) > 1:
            _note_repeated(changed, removed, element, mine, theirs, items)
        elif not mine:
            changed[element] = everything(theirs[0], items)
        elif not theirs:
            removed[element] = everything(mine[0], items)
        elif mine[0] != theirs[0]:
            _note(changed, removed, element, mine[0], theirs[0], items)
    return in_order(changed), in_order(removed)


def _note_repeated(
    changed: Tree, removed: Tree, element: str, old: Sequence[Any], new: Sequence[Any], items: Shape
) -> None:
    """k8s: items with a repeated key are one atomic field."""
    if len(old) > 1 and len(new) > 1:
        if list(old) != list(new):
            changed[element] = LEAF
    elif len(old) > 1:
        if new:
            changed[element] = everything(new[0], items)
        removed[element] = LEAF
    else:
        if old:
            removed[element] = everything(old[0], items)
        changed[element] = LEAF


def owned(document: dict[str, Any], shape: Shape) -> Tree:
    """Build the tree of fields that an applied configuration sets: leaves, list items and map entries, not parents."""
    return _owned(document, shape) or LEAF


def _owned(value: Any, shape: Shape | None) -> Tree | None:
    """Return the node of a value, None if it sets no field."""
    if isinstance(value, dict) and is_map(shape):
        return _owned_map(value, shape) if is_granular_map(shape) else LEAF
    if shape is not None and is_keyed_list(shape):
        return _owned_list(value, shape) if isinstance(value, list) else None
    if value is None and shape is not None and shape.kind in ("struct", "map") and not shape.atomic:
        return None
    return LEAF


def _owned_map(value: dict[str, Any], shape: Shape | None) -> Tree | None:
    declared = shape is not None and shape.kind == "struct"
    node: Tree = {}
    for name, child in value.items():
        if not isinstance(child, _CONTAINERS) or child == {}:
            node["f:" + name] = LEAF
            continue
        below = _owned(child, field_shape(shape, name))
        if not declared:
            below = union({SELF: LEAF}, below) if below else LEAF
        if below is not None:
            node["f:" + name] = below
    return in_order(node) or None


def _owned_list(values: Sequence[Any], shape: Shape) -> Tree | None:
    node: Tree = {}
    items = shape.items()
    for element, same in _by_element(values, shape).items():
        below = _owned(same[0], items) if len(same) == 1 else None
        node[element] = union({SELF: LEAF}, below) if below else LEAF
    return in_order(node) or None


def with_named_parents(tree: Tree, shape: Shape | None) -> Tree:
    """Add every declared field that has members below it. k8s: map keys and list items are not added."""
    out: Tree = {}
    for element, node in tree.items():
        if not node:
            out[element] = node
            continue
        below, is_declared = _below(element, shape)
        inner = with_named_parents(node, below)
        out[element] = {SELF: LEAF, **inner} if is_declared and SELF not in inner else inner
    return out


def fitted(tree: Tree, shape: Shape | None) -> Tree:
    """Own a field as a whole if it became atomic after the tree was written."""
    out = tree
    for element, node in tree.items():
        if not node:
            continue
        below, _ = _below(element, shape)
        if below is None or below.kind in ("untyped", "scalar"):
            continue
        is_atomic = below.list_type == "atomic" if below.kind == "list" else below.atomic
        fits = LEAF if is_atomic else fitted(node, below)
        if fits is not node:
            out = dict(tree) if out is tree else out  # copy once: a copy per element would be quadratic
            out[element] = fits
    return out


def _below(element: str, shape: Shape | None) -> tuple[Shape | None, bool]:
    if element.startswith("f:"):
        found = field_shape(shape, element[2:])
        return found, found is not None and shape is not None and shape.kind == "struct"
    if element.startswith("k:") and shape is not None and shape.kind == "list":
        return shape.items(), False
    return None, False
