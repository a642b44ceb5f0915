"""Prunes objects that are no longer in Git.

In: a live object, the options of the operation, and a deletion check. Out: a result code and Argo CD's message. Never:
deletes a version that `find_refusal` did not check.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.errors import ClusterError, Conflict
from argosy.gitops.application import Outcome
from argosy.gitops.sync.apply import ROUNDS
from argosy.gitops.sync.live_lookup import read_live
from argosy.gitops.sync.operation_terms import Terms
from argosy.kube.client import Cluster, Propagation
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

MayDelete = Callable[[Manifest], str]
Pruned = tuple[Outcome, str]


def refusal(live: Manifest, terms: Terms, may_delete: MayDelete) -> str:
    """Return why the object is not pruned; empty if it may be."""
    return terms.keeps(live) or may_delete(live)


async def prune(key: ResourceKey, live: Manifest, terms: Terms, may_delete: MayDelete, cluster: Cluster) -> Pruned:
    found: Manifest | None = live
    for _ in range(ROUNDS):
        if found is None:
            break
        if reason := refusal(found, terms, may_delete):
            return Outcome.PRUNE_SKIPPED, reason
        metadata = found["metadata"]
        if metadata.get("deletionTimestamp"):
            break
        try:
            await cluster.delete(
                key,
                propagation=Propagation(terms.propagation),
                uid=metadata.get("uid"),
                version=metadata.get("resourceVersion"),
            )
            break
        except Conflict:
            found = await read_live(key, cluster)
        except ClusterError as error:
            if error.code == 404:
                break
            return Outcome.SYNC_FAILED, error.message
    else:
        return Outcome.SYNC_FAILED, f"gave up after {ROUNDS} write conflicts; sync again"
    return Outcome.PRUNED, "pruned"
