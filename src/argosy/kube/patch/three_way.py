"""Builds the three-way patches of `kubectl apply`: the user's changes since the last apply, against the live object.

In: the last applied (`original`), desired (`modified`) and live (`current`) document. Out: a patch. Never: applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from argosy.errors import PatchError
from argosy.kube.objects.go_format import format_value
from argosy.kube.patch import merge_patch
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.strategic_diff import StrategicDiffOptions, diff_maps, values_differ
from argosy.kube.patch.strategic_list_order import DIRECTIVE, find_element_type
from argosy.kube.patch.strategic_merge import (
    RETAIN_KEYS,
    find_field_shape,
    get_merge_key,
    item_shape,
    merge_maps,
    read_patch_strategy,
)


class ConflictingChanges(PatchError):
    """The patch would overwrite a field that was changed in the live document, and `overwrite` is False."""


def build_strategic_patch(old: Mapping[str, Any], new: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Build a strategic merge patch that turns `old` into `new`."""
    return diff_maps(old, new, shape, StrategicDiffOptions())


def build_three_way_strategic_patch(
    original: Mapping[str, Any] | None,
    modified: Mapping[str, Any],
    current: Mapping[str, Any],
    shape: Shape,
    overwrite: bool = True,
) -> dict[str, Any]:
    """Combine additions and changes from current to modified with deletions from original to modified."""
    changes = diff_maps(current, modified, shape, StrategicDiffOptions(include_deletions=False))
    deletions = diff_maps(original or {}, modified, shape, StrategicDiffOptions(include_changes=False))
    patch = merge_maps(deletions, changes, shape, is_final=False)
    if not overwrite:
        live_changes = diff_maps(original or {}, current, shape, StrategicDiffOptions(include_order=False))
        if _maps_conflict(patch, live_changes, shape):
            raise ConflictingChanges(
                f"patch:\n{_format_patch(patch)}\nconflicts with changes made from original to current:\n"
                f"{_format_patch(live_changes)}\n"
            )
    return patch


def build_three_way_merge_patch(
    original: Mapping[str, Any] | None, modified: Mapping[str, Any], current: Mapping[str, Any]
) -> dict[str, Any]:
    """Build the same as a JSON merge patch, for kinds without strategic merge: custom resources."""
    changes = _filter_nulls(merge_patch.diff(current, modified), keep_nulls=False)
    deletions = _filter_nulls(merge_patch.diff(original or {}, modified), keep_nulls=True)
    return _overlay_changes(deletions, changes)


def _overlay_changes(patch: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(patch)
    for key, value in changes.items():
        base = merged.get(key)
        if isinstance(base, dict) and isinstance(value, dict):
            merged[key] = _overlay_changes(base, value)
        else:
            merged[key] = merge_patch.remove_nulls(value)
    return merged


def _filter_nulls(patch: Mapping[str, Any], *, keep_nulls: bool) -> dict[str, Any]:
    """Return only the deletions of a merge patch, or everything except them."""
    kept: dict[str, Any] = {}
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            if kept_children := _filter_nulls(value, keep_nulls=keep_nulls):
                kept[key] = kept_children
        elif (value is None) is keep_nulls:
            kept[key] = value
    return kept


def _format_patch(patch: Mapping[str, Any]) -> str:
    return orjson.dumps(patch, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()


def _maps_conflict(left: Mapping[str, Any], right: Mapping[str, Any], shape: Shape | None) -> bool:
    for key, value in left.items():
        if key in (DIRECTIVE, RETAIN_KEYS) or key not in right:
            continue
        field = find_field_shape(shape, key) if isinstance(value, dict | list) else None
        if _values_conflict(value, right[key], field, read_patch_strategy(field)[1], get_merge_key(field)):
            return True
    return False


def _values_conflict(left: Any, right: Any, shape: Shape | None, strategy: str, merge_key: str) -> bool:
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.get(DIRECTIVE) != right.get(DIRECTIVE):
            return True
        return strategy != "replace" and _maps_conflict(left, right, shape)
    if isinstance(left, list):
        return not isinstance(right, list) or _lists_conflict(left, right, item_shape(shape), strategy, merge_key)
    return values_differ(left, right)


def _lists_conflict(
    left: Sequence[Any], right: Sequence[Any], shape: Shape | None, strategy: str, merge_key: str
) -> bool:
    has_maps = find_element_type(left, right) is dict
    if strategy == "merge":
        if not has_maps:
            return False
        right_by_key = {format_value(element.get(merge_key)): element for element in right}
        return any(
            _values_conflict(element, right_by_key[format_value(element.get(merge_key))], shape, "", "")
            for element in left
            if format_value(element.get(merge_key)) in right_by_key
        )
    if len(left) != len(right):
        return True
    if not has_maps:
        left, right = sorted(left, key=format_value), sorted(right, key=format_value)
    return any(
        _values_conflict(left_element, right_element, shape, "", "") for left_element, right_element in zip(left, right)
    )
