"""Builds the strategic merge patch between two documents.

In: two documents and their shape. Out: a patch in new maps that share values with the documents. Never: applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argosy.errors import PatchError
from argosy.kube.objects.go_format import format_value
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.strategic_list_order import (
    DIRECTIVE,
    element_identity,
    find_element_type,
    remove_duplicates,
    require_merge_key,
    sort_by_order,
)
from argosy.kube.patch.strategic_merge import (
    DELETE_FROM,
    RETAIN_KEYS,
    SET_ORDER,
    find_field_shape,
    get_merge_key,
    item_shape,
    read_patch_strategy,
)


@dataclass(frozen=True, slots=True)
class StrategicDiffOptions:
    """Which differences the patch includes."""

    include_changes: bool = True
    include_deletions: bool = True
    include_order: bool = True
    include_retain_keys: bool = False


def diff_maps(
    original: Mapping[str, Any], modified: Mapping[str, Any], shape: Shape | None, options: StrategicDiffOptions
) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for key, value in modified.items():
        if key not in original:
            if options.include_changes:
                patch[key] = value
        elif key == DIRECTIVE:
            _diff_directive(patch, original[key], value)
        else:
            _diff_field(patch, key, original[key], value, shape, options)
    if options.include_deletions:
        patch.update((key, None) for key in original if key not in modified)
    if options.include_retain_keys:
        retained_keys = sorted((key for key, value in modified.items() if value is not None), key=format_value)
        if retained_keys and (
            patch or any(value is not None and key not in modified for key, value in original.items())
        ):
            patch[RETAIN_KEYS] = retained_keys
    return patch


def _diff_directive(patch: dict[str, Any], original: Any, modified: Any) -> None:
    if not isinstance(original, str) or not isinstance(modified, str):
        raise PatchError(f"invalid value for special key: {DIRECTIVE}")
    if original != modified:
        patch[DIRECTIVE] = modified


def _diff_field(
    patch: dict[str, Any], key: str, original: Any, modified: Any, shape: Shape | None, options: StrategicDiffOptions
) -> None:
    is_map = isinstance(original, dict) and isinstance(modified, dict)
    is_list = isinstance(original, list) and isinstance(modified, list)
    if not is_map and not is_list:
        if options.include_changes and values_differ(original, modified):
            patch[key] = modified
        return
    try:
        field = find_field_shape(shape, key)
    except PatchError:
        if original == modified:
            return  # an undeclared field matters only if it changes
        raise
    retains_keys, strategy = read_patch_strategy(field)
    field_options = (
        options if options.include_retain_keys is retains_keys else replace(options, include_retain_keys=retains_keys)
    )
    if is_map:
        if strategy == "replace":
            if options.include_changes:
                patch[key] = modified
        elif changes := diff_maps(original, modified, field, field_options):
            patch[key] = changes
    elif strategy == "merge":
        _diff_list(patch, key, original, modified, field, field_options)
    elif options.include_changes and original != modified:
        patch[key] = modified


def values_differ(left: Any, right: Any) -> bool:
    return bool(left != right) or isinstance(left, bool) is not isinstance(right, bool)


def _diff_list(
    patch: dict[str, Any],
    key: str,
    original: Sequence[Any],
    modified: Sequence[Any],
    field: Shape | None,
    options: StrategicDiffOptions,
) -> None:
    if not original:
        if modified and options.include_changes:
            patch[key] = modified
        return
    if find_element_type(original, modified) is dict:
        merge_key = get_merge_key(field)
        changes = _diff_elements(original, modified, item_shape(field), merge_key, options)
        same_order = _element_identities(original, merge_key) == _element_identities(modified, merge_key)
        needs_order = changes or (options.include_changes and not same_order)
        order: Sequence[Any] = [{merge_key: element[merge_key]} for element in modified]
    else:
        added, removed = _diff_scalars(original, modified)
        changes = sort_by_order(added, modified, "") if options.include_changes else []
        removed = removed if options.include_deletions else []
        if removed:
            patch[f"{DELETE_FROM}/{key}"] = removed
        # kubectl also sends an order for an unchanged list that is not sorted; it has no effect, so it is omitted here.
        needs_order = bool(removed) or (options.include_changes and original != modified)
        order = modified
    if changes:
        patch[key] = changes
    if options.include_order and needs_order and order:
        patch[f"{SET_ORDER}/{key}"] = order


def _element_identities(elements: Sequence[Any], merge_key: str) -> list[Any]:
    return [element_identity(element, merge_key) for element in elements]


def _diff_elements(
    original: Sequence[Any], modified: Sequence[Any], shape: Shape | None, merge_key: str, options: StrategicDiffOptions
) -> list[Any]:
    """Return changed and new elements in the order of `modified`, then the deletions."""
    require_merge_key(original, merge_key)
    require_merge_key(modified, merge_key)
    # k8s: both lists are compared sorted by the text of the merge key; among equal keys the last comes first.
    left, right = [*reversed(original)], [*reversed(modified)]
    left.sort(key=lambda element: format_value(element[merge_key]))
    right.sort(key=lambda element: format_value(element[merge_key]))
    changes: list[Any] = []
    deletions: list[Any] = []
    i = j = 0
    while i < len(left) or j < len(right):
        left_key = format_value(left[i][merge_key]) if i < len(left) else None
        right_key = format_value(right[j][merge_key]) if j < len(right) else None
        if left_key == right_key:
            if element_changes := diff_maps(left[i], right[j], shape, options):
                changes.append(element_changes | {merge_key: right[j][merge_key]})
            i, j = i + 1, j + 1
        elif left_key is None or (right_key is not None and right_key < left_key):
            if options.include_changes:
                changes.append(right[j])
            j += 1
        else:
            if options.include_deletions:
                deletions.append({merge_key: left[i][merge_key], DIRECTIVE: "delete"})
            i += 1
    return sort_by_order(changes, modified, merge_key) + deletions


def _diff_scalars(original: Sequence[Any], modified: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    left, right = sorted(original, key=format_value), sorted(modified, key=format_value)
    added: list[Any] = []
    removed: list[Any] = []
    i = j = 0
    while i < len(left) or j < len(right):
        left_text = format_value(left[i]) if i < len(left) else None
        right_text = format_value(right[j]) if j < len(right) else None
        if left_text == right_text:
            i, j = i + 1, j + 1
        elif left_text is None or (right_text is not None and right_text < left_text):
            added.append(right[j])
            j += 1
        else:
            removed.append(left[i])
            i += 1
    return added, remove_duplicates(removed)
