"""Writes objects for simulators: only changed fields, only over the version that was read, and never twice.

In: a live manifest and the desired state. Out: at most one write. Never: decides; retries.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from argosy.errors import ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext, Requeue
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.simulators.owner_references_and_marks import build_owner_reference

REQUEUE_AFTER_CONFLICT: Final = Requeue(0.05)
NAMESPACE_TERMINATING: Final = "because it is being terminated"

Self = TypeVar("Self")
Reconcile = Callable[[Self, ResourceKey, ControllerContext], Coroutine[Any, Any, Requeue | None]]


def requeue_on_conflict(reconcile: Reconcile[Self]) -> Reconcile[Self]:
    """Decorate a reconcile function: requeue soon after a conflict; ignore objects that are gone or being deleted."""

    @wraps(reconcile)
    async def wrapped(self: Self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        try:
            return await reconcile(self, key, context)
        except Conflict:
            return REQUEUE_AFTER_CONFLICT
        except ClusterError as error:
            if error.code == 404 or (error.code == 403 and NAMESPACE_TERMINATING in error.message):
                return None
            raise

    return wrapped


def is_permanent_rejection(error: ClusterError) -> bool:
    """True if the rejection is permanent and must be reported: a quota, or an invalid Pod template."""
    return error.code in (403, 422) and NAMESPACE_TERMINATING not in error.message


def equals_ignoring_empty(left: Any, right: Any) -> bool:
    """Compare two values; absent and empty are equal, because servers either omit or store empty values."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return all(equals_ignoring_empty(left.get(name), right.get(name)) for name in {*left, *right})
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equals_ignoring_empty, left, right))
    return left == right or (not left and not right)


async def update_status_if_changed(live: Manifest, desired: Mapping[str, Any], cluster: Cluster) -> bool:
    """Patch changed status fields; return True if something was written.

    None in `desired` removes a field; fields that are not in `desired` stay.
    """
    current = live.get("status") or {}
    changed = {name: value or None if value == 0 else value for name, value in desired.items()}
    changed = {name: value for name, value in changed.items() if not equals_ignoring_empty(current.get(name), value)}
    if not changed:
        return False
    metadata = {"resourceVersion": live["metadata"]["resourceVersion"]}
    await cluster.patch(key_of(live), {"metadata": metadata, "status": changed}, subresource="status")
    return True


async def patch_object(live: Manifest, patch: Mapping[str, Any], cluster: Cluster) -> Manifest:
    """Send a merge patch that applies only to the version that was read."""
    metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
    return await cluster.patch(key_of(live), {**patch, "metadata": metadata})


async def create_if_absent(manifest: Manifest, cluster: Cluster) -> bool:
    """Create an object; return False if the name exists. Names are deterministic, so it is then the desired object."""
    try:
        await cluster.create(manifest)
    except Conflict as error:
        if error.reason != "AlreadyExists":  # k8s: a quota was changed at the same time
            raise
        return False
    return True


async def delete_object(live: Manifest, cluster: Cluster, *, grace_seconds: int | None = None) -> None:
    """Delete this object by uid, if it still exists. Raises Conflict if another object has its name now."""
    try:
        await cluster.delete(key_of(live), uid=live["metadata"]["uid"], grace=grace_seconds)
    except ClusterError as error:
        if error.code != 404:
            raise


async def adopt(live: Manifest, owner: Manifest, cluster: Cluster) -> None:
    """Add a controller reference to an orphan."""
    references = [*(live["metadata"].get("ownerReferences") or ()), build_owner_reference(owner)]
    await patch_object(live, {"metadata": {"ownerReferences": references}}, cluster)
