"""Simulated PodDisruptionBudgets, and evictions that respect them."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import ClusterError
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.simulators import DEPLOYMENT, build_manifest, condition, deployment, fail, health, simulated

pytestmark = pytest.mark.anyio
BUDGET = GroupKind("policy", "PodDisruptionBudget")


def budget(**spec: Any) -> Manifest:
    return build_manifest("policy/v1", "PodDisruptionBudget", {"selector": {"matchLabels": {"app": "web"}}, **spec})


@pytest.mark.parametrize(
    ("spec", "needed", "spare"),
    [({"minAvailable": 3}, 3, 1), ({"maxUnavailable": "50%"}, 2, 2), ({"minAvailable": "90%"}, 4, 0)],
)
async def test_pdb_computes_the_allowed_disruptions(
    cluster: EmbeddedCluster, spec: dict[str, Any], needed: int, spare: int
) -> None:
    async with simulated(cluster) as world:
        await cluster.create(budget(**spec))
        await cluster.create(deployment(4))
        live = await world.becomes(BUDGET, lambda manifest: manifest["status"]["currentHealthy"] == 4)
    status = live["status"]
    assert (status["expectedPods"], status["desiredHealthy"]) == (4, needed)
    assert status.get("disruptionsAllowed", 0) == spare
    assert condition(live, "DisruptionAllowed")["status"] == ("True" if spare else "False")


async def test_eviction_is_rejected_while_the_pdb_allows_no_disruption(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(budget(minAvailable=2))
        manifest = deployment(2)
        manifest["metadata"]["annotations"] = fail("NotReady")
        await cluster.create(manifest)
        await world.becomes(BUDGET, lambda live_budget: live_budget["status"]["expectedPods"] == 2)
        # k8s: a Pod that does not run yet may always be evicted
        pod, _ = await world.pods_become(
            lambda pods: [running_pod["status"]["phase"] for running_pod in pods] == ["Running"] * 2
        )
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod["metadata"]["name"], "namespace": "default"},
        }
        with pytest.raises(ClusterError, match="disruption budget"):
            await cluster.create(eviction, subresource_of=key_of(pod))
        healthy = {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}, "spec": {"replicas": 3}}
        await world.patch(DEPLOYMENT, healthy)
        await world.becomes(BUDGET, lambda live_budget: live_budget["status"]["disruptionsAllowed"] == 1)
        await cluster.create(eviction, subresource_of=key_of(pod))
        await world.becomes(DEPLOYMENT, lambda live_deployment: health(live_deployment)[0] == "Healthy")
