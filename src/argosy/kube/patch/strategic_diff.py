"""Builds the strategic merge patch between two documents.

In: two documents and their shape. Out: a patch in new maps that share values with the documents. Never: applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy.errors import PatchError
from argosy.kube.patch.go_format import show
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.strategic_lists import DIRECTIVE, element_type, identity, require_merge_key, sort_like, unique
from argosy.kube.patch.strategic_merge import (
    DELETE_FROM,
    RETAIN_KEYS,
    SET_ORDER,
    field_of,
    items_of,
    merge_key_of,
    strategy_of,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which differences the patch includes."""

    changes: bool = True
    deletions: bool = True
    order: bool = True
    retain_keys: bool = False


def diff_maps(
    original: Mapping[str, Any], modified: Mapping[str, Any], shape: Shape | None, wanted: Wanted
) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for key, value in modified.items():
        if key not in original:
            if wanted.changes:
                patch[key] = value
        elif key == DIRECTIVE:
            _diff_directive(patch, original[key], value)
        else:
            _diff_field(patch, key, original[key], value, shape, wanted)
    if wanted.deletions:
        patch.update((key, None) for key in original if key not in modified)
    if wanted.retain_keys:
        kept = sorted((key for key, value in modified.items() if value is not None), key=show)
        if kept and (patch or any(value is not None and key not in modified for key, value in original.items())):
            patch[RETAIN_KEYS] = kept
    return patch


def _diff_directive(patch: dict[str, Any], original: Any, modified: Any) -> None:
    if not isinstance(original, str) or not isinstance(modified, str):
        raise PatchError(f"invalid value for special key: {DIRECTIVE}")
    if original != modified:
        patch[DIRECTIVE] = modified


def _diff_field(
    patch: dict[str, Any], key: str, original: Any, modified: Any, shape: Shape | None, wanted: Wanted
) -> None:
    is_map = isinstance(original, dict) and isinstance(modified, dict)
    is_list = isinstance(original, list) and isinstance(modified, list)
    if not is_map and not is_list:
        if wanted.changes and differ(original, modified):
            patch[key] = modified
        return
    try:
        field = field_of(shape, key)
    except PatchError:
        if original == modified:
            return  # an undeclared field matters only if it changes
        raise
    retains, strategy = strategy_of(field)
    below = wanted if wanted.retain_keys is retains else replace(wanted, retain_keys=retains)
    if is_map:
        if strategy == "replace":
            if wanted.changes:
                patch[key] = modified
        elif changes := diff_maps(original, modified, field, below):
            patch[key] = changes
    elif strategy == "merge":
        _diff_list(patch, key, original, modified, field, below)
    elif wanted.changes and original != modified:
        patch[key] = modified


def differ(one: Any, other: Any) -> bool:
    return bool(one != other) or isinstance(one, bool) is not isinstance(other, bool)


def _diff_list(
    patch: dict[str, Any],
    key: str,
    original: Sequence[Any],
    modified: Sequence[Any],
    field: Shape | None,
    wanted: Wanted,
) -> None:
    if not original:
        if modified and wanted.changes:
            patch[key] = modified
        return
    if element_type(original, modified) is dict:
        merge_key = merge_key_of(field)
        changes = _diff_elements(original, modified, items_of(field), merge_key, wanted)
        same_order = _keys(original, merge_key) == _keys(modified, merge_key)
        ordered = changes or (wanted.changes and not same_order)
        order: Sequence[Any] = [{merge_key: element[merge_key]} for element in modified]
    else:
        added, removed = _diff_scalars(original, modified)
        changes = sort_like(added, modified, "") if wanted.changes else []
        removed = removed if wanted.deletions else []
        if removed:
            patch[f"{DELETE_FROM}/{key}"] = removed
        # kubectl also sends an order for an unchanged list that is not sorted; it has no effect, so it is omitted here.
        ordered = bool(removed) or (wanted.changes and original != modified)
        order = modified
    if changes:
        patch[key] = changes
    if wanted.order and ordered and order:
        patch[f"{SET_ORDER}/{key}"] = order


def _keys(elements: Sequence[Any], merge_key: str) -> list[Any]:
    return [identity(element, merge_key) for element in elements]


def _diff_elements(
    original: Sequence[Any], modified: Sequence[Any], shape: Shape | None, merge_key: str, wanted: Wanted
) -> list[Any]:
    """Return changed and new elements in the order of `modified`, then the deletions."""
    require_merge_key(original, merge_key)
    require_merge_key(modified, merge_key)
    # k8s: both lists are compared sorted by the text of the merge key; among equal keys the last comes first.
    left, right = [*reversed(original)], [*reversed(modified)]
    left.sort(key=lambda element: show(element[merge_key]))
    right.sort(key=lambda element: show(element[merge_key]))
    changes: list[Any] = []
    deletions: list[Any] = []
    i = j = 0
    while i < len(left) or j < len(right):
        mine = show(left[i][merge_key]) if i < len(left) else None
        theirs = show(right[j][merge_key]) if j < len(right) else None
        if mine == theirs:
            if changed := diff_maps(left[i], right[j], shape, wanted):
                changes.append(changed | {merge_key: right[j][merge_key]})
            i, j = i + 1, j + 1
        elif mine is None or (theirs is not None and theirs < mine):
            if wanted.changes:
                changes.append(right[j])
            j += 1
        else:
            if wanted.deletions:
                deletions.append({merge_key: left[i][merge_key], DIRECTIVE: "delete"})
            i += 1
    return sort_like(changes, modified, merge_key) + deletions


def _diff_scalars(original: Sequence[Any], modified: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    left, right = sorted(original, key=show), sorted(modified, key=show)
    added: list[Any] = []
    removed: list[Any] = []
    i = j = 0
    while i < len(left) or j < len(right):
        mine = show(left[i]) if i < len(left) else None
        theirs = show(right[j]) if j < len(right) else None
        if mine == theirs:
            i, j = i + 1, j + 1
        elif mine is None or (theirs is not None and theirs < mine):
            added.append(right[j])
            j += 1
        else:
            removed.append(left[i])
            i += 1
    return added, unique(removed)
