"""Manifests that Git does not ask for any more.

In: a live manifest, the terms of the operation, and who may say no. Out: an outcome and Argo CD's words.
Never: deletes what `may_delete` did not look at in the very version that goes.
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
    """Why it stays; empty where it may go."""
    return terms.keeps(live) or may_delete(live)


async def prune(
    key: ResourceKey, live: Manifest, terms: Terms, may_delete: MayDelete, cluster: Cluster
) -> Pruned:
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
        return Outcome.SYNC_FAILED, "it changes all the time; sync again when it has settled"
    return Outcome.PRUNED, "pruned"
