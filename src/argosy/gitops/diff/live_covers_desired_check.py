"""Checks quickly whether a live manifest already has everything that is desired, as most do.

In: two manifests of a built-in kind, in the same form. Out: True, or False if a full comparison is needed. Never: a
wrong True.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import PatchError
from argosy.gitops.diff.field_projection import is_same_json
from argosy.kube.patch.merge_schema_protocol import Shape
from argosy.kube.patch.strategic_merge import find_field_shape, get_merge_key, item_shape, read_patch_strategy


def covers_desired(live: Any, desired: Any, shape: Shape | None) -> bool:
    """True if a strategic merge of desired into live would change nothing."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return _covers_map(live, desired, shape)
    if isinstance(desired, list) and isinstance(live, list) and read_patch_strategy(shape)[1] == "merge":
        return _covers_list(live, desired, shape)
    return is_same_json(live, desired)


def _covers_map(live: dict[str, Any], desired: dict[str, Any], shape: Shape | None) -> bool:
    retains, strategy = read_patch_strategy(shape)
    if strategy == "replace" or (retains and live.keys() != desired.keys()):
        return is_same_json(live, desired)
    for name, value in desired.items():
        if name not in live:
            return False
        live_value = live[name]
        if isinstance(value, dict | list):
            try:
                field = find_field_shape(shape, name)
            except PatchError:
                return False
            if not covers_desired(live_value, value, field):
                return False
        elif live_value != value or isinstance(live_value, bool) is not isinstance(value, bool):
            return False
    return True


def _covers_list(live: list[Any], desired: list[Any], shape: Shape | None) -> bool:
    """Compare element by element; another order or length needs the full comparison."""
    key = get_merge_key(shape)
    if len(live) != len(desired) or not key:
        return is_same_json(live, desired)
    items = item_shape(shape)
    return all(
        isinstance(desired_item, dict)
        and isinstance(live_item, dict)
        and key in desired_item
        and is_same_json(desired_item[key], live_item.get(key))
        and covers_desired(live_item, desired_item, items)
        for desired_item, live_item in zip(desired, live)
    )
