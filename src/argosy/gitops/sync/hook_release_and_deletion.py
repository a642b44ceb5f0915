"""Releases and deletes hooks in the cluster.

In: a live hook. Out: the hook if it still exists. Raises ClusterError. Never: touches another object of the same name:
every call is for one uid.
"""

from __future__ import annotations

from argosy.annotations import HOOK_FINALIZER
from argosy.errors import ClusterError, Conflict, Invalid
from argosy.gitops.sync.apply import MAX_CONFLICT_ATTEMPTS
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.kube.client import Cluster, PatchKind, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


async def remove_hook_finalizer(key: ResourceKey, live: Manifest, cluster: Cluster) -> None:
    """Remove the finalizer that kept the hook until its result was written."""
    for _ in range(MAX_CONFLICT_ATTEMPTS):
        current = await fetch_live(key, cluster)  # the known version may be from before the finalizer was added
        if current is None or _uid(current) != _uid(live) or HOOK_FINALIZER not in _finalizers(current):
            return
        finalizer_path = f"/metadata/finalizers/{_finalizers(current).index(HOOK_FINALIZER)}"
        patch = [
            {"op": "test", "path": "/metadata/uid", "value": _uid(live)},
            {"op": "test", "path": finalizer_path, "value": HOOK_FINALIZER},
            {"op": "remove", "path": finalizer_path},
        ]
        try:
            await cluster.patch(key, patch, kind_of_patch=PatchKind.JSON)
            return
        except (Conflict, Invalid):
            continue  # a test failed: it was changed meanwhile
        except ClusterError as error:
            if error.code == 404:
                return
            raise
    raise Conflict(f"gave up after {MAX_CONFLICT_ATTEMPTS} write conflicts", key=key)


async def delete_hook(key: ResourceKey, live: Manifest, cluster: Cluster, propagation: Propagation) -> Manifest | None:
    """Delete the hook; return it if it still exists."""
    await remove_hook_finalizer(key, live, cluster)
    has_conflict = False
    try:
        if not live["metadata"].get("deletionTimestamp"):
            await cluster.delete(key, propagation=propagation, uid=_uid(live) or None)
    except Conflict:
        has_conflict = True  # another hook of the same name, or changed meanwhile
    except ClusterError as error:
        if error.code == 404:
            return None
        raise
    current = await fetch_live(key, cluster)
    if current is None or _uid(current) != _uid(live):
        return None
    if has_conflict:
        raise Conflict("it was changed while it was deleted", key=key)
    return current


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"].get("uid") or "")


def _finalizers(manifest: Manifest) -> list[str]:
    return list(manifest["metadata"].get("finalizers") or ())
