"""The patch that an action's impact comes to.

In: the source and an Impact. Out: a JSON merge patch, as small as can be. Never: touches what only a cluster writes.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.gitops.health.actions.action_results import Impact
from argosy.kube.objects import Manifest
from argosy.kube.patch import merge_patch

# A script that builds its object anew leaves these out, which must not read as "delete them".
_CLUSTERS_OWN: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip


def patch_of(source: Manifest, impact: Impact) -> dict[str, Any]:
    """The merge patch that makes the source what the impact says; `{}` where there is nothing to do."""
    patch: dict[str, Any] = merge_patch.diff(_without_nulls(source), _without_nulls(impact.manifest))
    changed = patch.pop("metadata", None) or {}
    metadata = {name: part for name, part in changed.items() if name not in _CLUSTERS_OWN}
    return {"metadata": metadata, **patch} if metadata else patch


def split_status(patch: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The patch for the object, and the one for its status: each `{}` where there is nothing to do.

    argo: status goes to the subresource of that name, since a kind that has one ignores it elsewhere.
    """
    rest = {name: part for name, part in patch.items() if name != "status"}
    return rest, ({"status": patch["status"]} if "status" in patch else {})


def _without_nulls(value: Any) -> Any:
    """As scripts see it: a null that they never saw is nothing that they took away."""
    if isinstance(value, dict):
        return {name: _without_nulls(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_nulls(part) for part in value if part is not None]
    return value
