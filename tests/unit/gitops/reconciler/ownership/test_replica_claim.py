"""Claims of Applications: each new owner raises the fence, whatever version wrote the last one."""

from __future__ import annotations

from typing import Any

import pytest

from argosy import annotations as names
from argosy.errors import Conflict
from argosy.gitops.reconciler.app_memo import OwnershipMemos
from argosy.gitops.reconciler.ownership.application_claim_fence import ApplicationClaims
from argosy.kube.client import Cluster
from argosy.kube.controller.sharding.membership import ShardMembership
from argosy.kube.objects import key_of

pytestmark = pytest.mark.anyio
LATER = "argosy.dev/later"


async def create_config_map(cluster: Cluster, namespace: str, fence: str | None) -> dict[str, Any]:
    initial_annotations = {LATER: "{}"} if fence is None else {LATER: "{}", names.FENCE: fence}
    metadata = {"name": "app", "namespace": namespace, "annotations": initial_annotations}
    return dict(await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))


def build_claims(
    cluster: Cluster, namespace: str, identity: str, memos: OwnershipMemos | None = None
) -> ApplicationClaims:
    return ApplicationClaims(ShardMembership(cluster, namespace, identity=identity), memos or OwnershipMemos())


@pytest.mark.parametrize(
    ("held", "then"),
    [(None, "1/one"), ("", "1/one"), ("7", "8/one"), ("7/two", "8/one"), ("7/two/more", "8/one"), ("v2 7", "1/one")],
)
async def test_claim_raises_a_fence_of_any_format_and_keeps_other_annotations(
    cluster: Cluster, namespace: str, held: str | None, then: str
) -> None:
    claims = build_claims(cluster, namespace, "one")
    claimed = await claims.claim(await create_config_map(cluster, namespace, held), cluster)
    assert claimed["metadata"]["annotations"] == {LATER: "{}", names.FENCE: then}
    assert await claims.claim(claimed, cluster) is claimed, "once is enough"


async def test_forgotten_application_is_claimed_again(cluster: Cluster, namespace: str) -> None:
    memos = OwnershipMemos()
    claims = build_claims(cluster, namespace, "one", memos)
    claimed = await claims.claim(await create_config_map(cluster, namespace, None), cluster)
    memos.forget(key_of(claimed))
    assert (await claims.claim(claimed, cluster))["metadata"]["annotations"][names.FENCE] == "2/one"


async def test_claim_conflicts_if_another_replica_claimed_since_the_read(cluster: Cluster, namespace: str) -> None:
    read = await create_config_map(cluster, namespace, "7/three")
    await ApplicationClaims(ShardMembership(cluster, namespace, identity="two"), OwnershipMemos()).claim(read, cluster)
    with pytest.raises(Conflict):
        await ApplicationClaims(ShardMembership(cluster, namespace, identity="one"), OwnershipMemos()).claim(
            read, cluster
        )
