"""Builds the three-way patches of `kubectl apply`: the user's changes since the last apply, against the live object.

In: the last applied (`original`), desired (`modified`) and live (`current`) document. Out: a patch. Never: applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from argosy.errors import PatchError
from argosy.kube.patch import merge_patch
from argosy.kube.patch.go_format import show
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.strategic_diff import Wanted, diff_maps, differ
from argosy.kube.patch.strategic_lists import DIRECTIVE, element_type
from argosy.kube.patch.strategic_merge import RETAIN_KEYS, field_of, items_of, merge_key_of, merge_maps, strategy_of


class ConflictingChanges(PatchError):
    """The patch would overwrite a field that was changed in the live document, and `overwrite` is False."""


def strategic_diff(old: Mapping[str, Any], new: Mapping[str, Any], shape: Shape) -> dict[str, Any]:
    """Build a strategic merge patch that turns `old` into `new`."""
    return diff_maps(old, new, shape, Wanted())


def strategic(
    original: Mapping[str, Any] | None,
    modified: Mapping[str, Any],
    current: Mapping[str, Any],
    shape: Shape,
    overwrite: bool = True,
) -> dict[str, Any]:
    """Combine additions and changes from current to modified with deletions from original to modified."""
    delta = diff_maps(current, modified, shape, Wanted(deletions=False))
    deletions = diff_maps(original or {}, modified, shape, Wanted(changes=False))
    patch = merge_maps(deletions, delta, shape, is_final=False)
    if not overwrite:
        changed = diff_maps(original or {}, current, shape, Wanted(order=False))
        if _maps_conflict(patch, changed, shape):
            raise ConflictingChanges(
                f"patch:\n{_readable(patch)}\nconflicts with changes made from original to current:\n"
                f"{_readable(changed)}\n"
            )
    return patch


def merge(
    original: Mapping[str, Any] | None, modified: Mapping[str, Any], current: Mapping[str, Any]
) -> dict[str, Any]:
    """Build the same as a JSON merge patch, for kinds without strategic merge: custom resources."""
    changes = _only(merge_patch.diff(current, modified), nulls=False)
    deletions = _only(merge_patch.diff(original or {}, modified), nulls=True)
    return _laid_over(deletions, changes)


def _laid_over(patch: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(patch)
    for key, value in changes.items():
        below = merged.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[key] = _laid_over(below, value)
        else:
            merged[key] = merge_patch.without_nulls(value)
    return merged


def _only(patch: Mapping[str, Any], *, nulls: bool) -> dict[str, Any]:
    """Return only the deletions of a merge patch, or everything except them."""
    kept: dict[str, Any] = {}
    for key, value in patch.items():
        if isinstance(value, dict) and value:
            if inner := _only(value, nulls=nulls):
                kept[key] = inner
        elif (value is None) is nulls:
            kept[key] = value
    return kept


def _readable(patch: Mapping[str, Any]) -> str:
    return orjson.dumps(patch, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()


def _maps_conflict(left: Mapping[str, Any], right: Mapping[str, Any], shape: Shape | None) -> bool:
    for key, mine in left.items():
        if key in (DIRECTIVE, RETAIN_KEYS) or key not in right:
            continue
        field = field_of(shape, key) if isinstance(mine, dict | list) else None
        if _conflict(mine, right[key], field, strategy_of(field)[1], merge_key_of(field)):
            return True
    return False


def _conflict(left: Any, right: Any, shape: Shape | None, strategy: str, merge_key: str) -> bool:
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.get(DIRECTIVE) != right.get(DIRECTIVE):
            return True
        return strategy != "replace" and _maps_conflict(left, right, shape)
    if isinstance(left, list):
        return not isinstance(right, list) or _lists_conflict(left, right, items_of(shape), strategy, merge_key)
    return differ(left, right)


def _lists_conflict(
    left: Sequence[Any], right: Sequence[Any], shape: Shape | None, strategy: str, merge_key: str
) -> bool:
    of_maps = element_type(left, right) is dict
    if strategy == "merge":
        if not of_maps:
            return False
        theirs = {show(element.get(merge_key)): element for element in right}
        return any(
            _conflict(element, theirs[show(element.get(merge_key))], shape, "", "")
            for element in left
            if show(element.get(merge_key)) in theirs
        )
    if len(left) != len(right):
        return True
    if not of_maps:
        left, right = sorted(left, key=show), sorted(right, key=show)
    return any(_conflict(mine, other, shape, "", "") for mine, other in zip(left, right))
