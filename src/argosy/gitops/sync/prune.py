"""Prunes objects that are no longer in Git.

In: a live object, the options of the operation, and a deletion check. Out: a result code and Argo CD's message. Never:
deletes a version that `find_refusal` did not check.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.errors import ClusterError, Conflict
from argosy.gitops.application import ResultCode
from argosy.gitops.sync.apply import MAX_CONFLICT_ATTEMPTS
from argosy.gitops.sync.effective_apply_and_prune_options import OperationOptions
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

FindDeletionRefusal = Callable[[Manifest], str]
PruneResult = tuple[ResultCode, str]


def find_prune_refusal(live: Manifest, operation_options: OperationOptions, find_refusal: FindDeletionRefusal) -> str:
    """Return why the object is not pruned; empty if it may be."""
    return operation_options.find_prune_refusal(live) or find_refusal(live)


async def prune_object(
    key: ResourceKey,
    live: Manifest,
    operation_options: OperationOptions,
    find_refusal: FindDeletionRefusal,
    cluster: Cluster,
) -> PruneResult:
    current: Manifest | None = live
    for _ in range(MAX_CONFLICT_ATTEMPTS):
        if current is None:
            break
        if reason := find_prune_refusal(current, operation_options, find_refusal):
            return ResultCode.PRUNE_SKIPPED, reason
        metadata = current["metadata"]
        if metadata.get("deletionTimestamp"):
            break
        try:
            await cluster.delete(
                key,
                propagation=Propagation(operation_options.propagation),
                uid=metadata.get("uid"),
                version=metadata.get("resourceVersion"),
            )
            break
        except Conflict:
            current = await fetch_live(key, cluster)
        except ClusterError as error:
            if error.code == 404:
                break
            return ResultCode.SYNC_FAILED, error.message
    else:
        return ResultCode.SYNC_FAILED, f"gave up after {MAX_CONFLICT_ATTEMPTS} write conflicts; sync again"
    return ResultCode.PRUNED, "pruned"
