"""Builds the patch for the impact of an action.

In: the source and an ActionImpact. Out: a minimal JSON merge patch. Never: changes metadata that only the cluster
writes.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.gitops.health.actions.action_results import ActionImpact
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch

# A script that builds a new object omits these, which must not count as a deletion.
_SERVER_FIELDS: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip


def build_patch(source: Manifest, impact: ActionImpact) -> dict[str, Any]:
    """Return the merge patch that turns the source into the manifest of the impact; `{}` if nothing changes."""
    patch: dict[str, Any] = merge_patch.diff(_without_nulls(source), _without_nulls(impact.manifest))
    changed = patch.pop("metadata", None) or {}
    metadata = {name: part for name, part in changed.items() if name not in _SERVER_FIELDS}
    return {"metadata": metadata, **patch} if metadata else patch


def split_status(patch: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the patch for the object and the one for its status; each `{}` if nothing changes.

    argo: status is patched through the status subresource, because a kind with one ignores it elsewhere.
    """
    object_patch = {name: part for name, part in patch.items() if name != "status"}
    return object_patch, ({"status": patch["status"]} if "status" in patch else {})


def _without_nulls(value: Any) -> Any:
    """Remove nulls, which scripts do not see, so that they do not count as deleted."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value
