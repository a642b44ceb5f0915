"""Computes the merge patch that brings a live manifest to its desired content.

In: live and desired. Out: a patch, or None. Never: changes a field that is not in the desired state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.patch.merge_patch import diff

_ABSENT: Final = object()


def build_update_patch(live: Any, desired: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the merge patch that makes live contain everything in `desired`; a None in `desired` means absent."""
    patch = _build_patch(live if isinstance(live, Mapping) else {}, desired)
    return patch or None


def _build_patch(live: Mapping[str, Any], desired: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, value in desired.items():
        current = live.get(name, _ABSENT)
        if value is None:
            if current is not _ABSENT:
                patch[name] = None
        elif isinstance(value, Mapping) and isinstance(current, Mapping):
            if inner := _build_patch(current, value):
                patch[name] = inner
        elif current is _ABSENT or current != value:
            patch[name] = value
    return patch


def build_replacement_patch(live: Manifest, desired: Manifest, replaced_field: str) -> dict[str, Any] | None:
    """Like `build_update_patch`, but the field `replaced_field` is replaced: it holds only what is desired."""
    metadata = {name: value for name in ("labels", "annotations") if (value := desired["metadata"].get(name))}
    patch = build_update_patch(live, {"metadata": metadata}) or {}
    if inner := diff(live.get(replaced_field) or {}, desired.get(replaced_field) or {}):
        patch[replaced_field] = inner
    return patch or None
