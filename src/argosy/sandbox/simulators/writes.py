"""How simulators write: only what differs, only over what they have read, and never twice.

In: a live manifest and what it should be. Out: at most one write. Never: decides; retries.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from argosy.errors import ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller import Context, Requeue
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.constants import reference_to

SOON: Final = Requeue(0.05)
ENDING: Final = "because it is being terminated"

Self = TypeVar("Self")
Reconcile = Callable[[Self, ResourceKey, Context], Coroutine[Any, Any, Requeue | None]]


def patient(reconcile: Reconcile[Self]) -> Reconcile[Self]:
    """What was read is not what is there any more: look again soon. What is gone, or about to be, needs nothing."""

    @wraps(reconcile)
    async def wrapped(self: Self, key: ResourceKey, context: Context) -> Requeue | None:
        try:
            return await reconcile(self, key, context)
        except Conflict:
            return SOON
        except ClusterError as error:
            if error.code == 404 or (error.code == 403 and ENDING in error.message):
                return None
            raise

    return wrapped


def denied(error: ClusterError) -> bool:
    """A refusal that lasts and that people must hear of: a quota, or a template that makes no good Pod."""
    return error.code in (403, 422) and ENDING not in error.message


def same(left: Any, right: Any) -> bool:
    """Equal, where what is absent is the same as nothing: servers leave out what is empty, or write it down."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return all(same(left.get(name), right.get(name)) for name in {*left, *right})
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right or (not left and not right)


async def keep_status(live: Manifest, wanted: Mapping[str, Any], cluster: Cluster) -> bool:
    """Whether it was written. What is None in `wanted` is taken out; what is not in it stays."""
    known = live.get("status") or {}
    changed = {name: value or None if value == 0 else value for name, value in wanted.items()}
    changed = {name: value for name, value in changed.items() if not same(known.get(name), value)}
    if not changed:
        return False
    metadata = {"resourceVersion": live["metadata"]["resourceVersion"]}
    await cluster.patch(key_of(live), {"metadata": metadata, "status": changed}, subresource="status")
    return True


async def change(live: Manifest, patch: Mapping[str, Any], cluster: Cluster) -> Manifest:
    """A merge patch, over exactly the version that was read."""
    metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
    return await cluster.patch(key_of(live), {**patch, "metadata": metadata})


async def create_once(manifest: Manifest, cluster: Cluster) -> bool:
    """False: one of this name is there already. Names are made so that it is then what we wanted."""
    try:
        await cluster.create(manifest)
    except Conflict as error:
        if error.reason != "AlreadyExists":  # k8s: a quota that another changed at the same time
            raise
        return False
    return True


async def remove(live: Manifest, cluster: Cluster, *, grace: int | None = None) -> None:
    """This very object, if it is still there. Raises Conflict where another has its name by now."""
    try:
        await cluster.delete(key_of(live), uid=live["metadata"]["uid"], grace=grace)
    except ClusterError as error:
        if error.code != 404:
            raise


async def adopt(live: Manifest, owner: Manifest, cluster: Cluster) -> None:
    references = [*(live["metadata"].get("ownerReferences") or ()), reference_to(owner)]
    await change(live, {"metadata": {"ownerReferences": references}}, cluster)
