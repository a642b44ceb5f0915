"""Deletes an object only in a version that was checked: another Application may take it over at any moment.

In: a live object and a check. Out: nothing. Raises ClusterError. Never: waits until the object is gone; deletes a
version that the check did not see.
"""

from __future__ import annotations

from argosy.errors import ClusterError, Conflict
from argosy.gitops.application.sync_annotations import is_hook
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.apply import MAX_CONFLICT_ATTEMPTS
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.prune import FindDeletionRefusal
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


async def delete_checked(
    key: ResourceKey, checked: Manifest, cluster: Cluster, propagation: Propagation, find_refusal: FindDeletionRefusal
) -> None:
    """Delete the object that was checked, unless `find_refusal` is against a newer version of it."""
    current: Manifest | None = checked
    if is_hook(checked):
        await hook_release_and_deletion.remove_hook_finalizer(key, checked, cluster)
        current = await fetch_live(key, cluster)
    for _ in range(MAX_CONFLICT_ATTEMPTS):  # after many conflicts the next step tries again
        if current is None or find_refusal(current):
            return
        metadata = current["metadata"]
        if metadata.get("deletionTimestamp"):
            return
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        try:
            await cluster.delete(key, propagation=propagation, uid=uid, version=version)
            return
        except Conflict:
            current = await fetch_live(key, cluster)
        except ClusterError as error:
            if error.code != 404:
                raise
            return
