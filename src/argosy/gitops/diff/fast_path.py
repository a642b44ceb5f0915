"""Checks quickly whether a live manifest already has everything that is desired, as most do.

In: two manifests of a built-in kind, in the same form. Out: True, or False if a full comparison is needed. Never: a
wrong True.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import PatchError
from argosy.gitops.diff.field_subset import same
from argosy.kube.patch.merge_schema import Shape
from argosy.kube.patch.strategic_merge import field_of, items_of, merge_key_of, strategy_of


def covers(live: Any, desired: Any, shape: Shape | None) -> bool:
    """True if a strategic merge of desired into live would change nothing."""
    if isinstance(desired, dict) and isinstance(live, dict):
        return _covers_map(live, desired, shape)
    if isinstance(desired, list) and isinstance(live, list) and strategy_of(shape)[1] == "merge":
        return _covers_list(live, desired, shape)
    return same(live, desired)


def _covers_map(live: dict[str, Any], desired: dict[str, Any], shape: Shape | None) -> bool:
    retains, strategy = strategy_of(shape)
    if strategy == "replace" or (retains and live.keys() != desired.keys()):
        return same(live, desired)
    for name, value in desired.items():
        if name not in live:
            return False
        found = live[name]
        if isinstance(value, dict | list):
            try:
                field = field_of(shape, name)
            except PatchError:
                return False
            if not covers(found, value, field):
                return False
        elif found != value or isinstance(found, bool) is not isinstance(value, bool):
            return False
    return True


def _covers_list(live: list[Any], desired: list[Any], shape: Shape | None) -> bool:
    """Compare element by element; another order or length needs the full comparison."""
    key = merge_key_of(shape)
    if len(live) != len(desired) or not key:
        return same(live, desired)
    items = items_of(shape)
    return all(
        isinstance(mine, dict)
        and isinstance(found, dict)
        and key in mine
        and same(mine[key], found.get(key))
        and covers(found, mine, items)
        for mine, found in zip(desired, live)
    )
