"""Simulated ResourceQuotas: admission, workload conditions and usage in the status."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import Forbidden
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import RESOURCE_QUOTA
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.simulators import (
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    build_manifest,
    condition,
    deployment,
    health,
    pod,
    simulated,
    template,
)

pytestmark = pytest.mark.anyio


def quota(name: str = "compute", hard: dict[str, str] | None = None, **spec: Any) -> Manifest:
    return build_manifest("v1", "ResourceQuota", {"hard": hard or {"pods": "2"}, **spec}, name)


async def in_force(cluster: EmbeddedCluster, manifest: Manifest) -> None:
    """Create the quota and set its status as the quota controller would: without it, a quota limits nothing."""
    created = await cluster.create(manifest)
    await cluster.patch(key_of(created), {"status": {"hard": manifest["spec"]["hard"]}}, subresource="status")


async def test_quota_without_status_limits_nothing(cluster: EmbeddedCluster) -> None:
    await cluster.create(quota(hard={"pods": "0"}))
    await cluster.create(pod())


def asking(**amounts: str) -> Manifest:
    resources = {"requests": amounts}
    return pod(containers=[{"name": "main", "image": "example:1", "resources": resources}])


def limited(**amounts: str) -> Manifest:
    resources = {"limits": amounts}
    return pod(containers=[{"name": "main", "image": "example:1", "resources": resources}])


async def test_deployment_over_quota_reports_it_and_continues_when_the_quota_grows(
    cluster: EmbeddedCluster,
) -> None:
    async with simulated(cluster) as world:
        await in_force(cluster, quota())
        await cluster.create(deployment(3))
        live = await world.becomes(
            DEPLOYMENT, lambda manifest: condition(manifest, "ReplicaFailure")["status"] == "True"
        )
        message = condition(live, "ReplicaFailure")["message"]
        assert "is forbidden: exceeded quota: compute, requested: pods=1, used: pods=2, limited: pods=2" in message
        assert condition(live, "ReplicaFailure")["reason"] == "FailedCreate"
        assert message.endswith("(simulated by argosy)")
        (only,) = await world.all(REPLICA_SET)
        assert health(only)[0] == "Degraded"
        await world.becomes(
            RESOURCE_QUOTA,
            lambda manifest: manifest["status"] == {"hard": {"pods": "2"}, "used": {"pods": "2"}},
            "compute",
        )
        await world.told("FailedCreate: Error creating: pods ")
        await world.patch(RESOURCE_QUOTA, {"spec": {"hard": {"pods": "3"}}}, "compute")
        await world.becomes(
            DEPLOYMENT, lambda manifest: health(manifest)[0] == "Healthy" and manifest["status"]["replicas"] == 3
        )
        await world.becomes(RESOURCE_QUOTA, lambda manifest: manifest["status"]["used"] == {"pods": "3"}, "compute")


async def test_job_and_stateful_set_wait_for_quota_and_emit_events(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await in_force(cluster, quota(hard={"pods": "0"}))
        await cluster.create(build_manifest("batch/v1", "Job", {"template": template(restartPolicy="Never")}))
        selector = {"selector": {"matchLabels": {"app": "web"}}, "serviceName": "web"}
        await cluster.create(build_manifest("apps/v1", "StatefulSet", {**selector, "template": template()}))
        await world.told("FailedCreate: Error creating: ", "FailedCreate: create Pod in StatefulSet web failed error: ")
        await world.patch(RESOURCE_QUOTA, {"spec": {"hard": {"pods": "5"}}}, "compute")
        await world.becomes(JOB, lambda job: health(job)[0] == "Healthy")
        await world.becomes(STATEFUL_SET, lambda stateful_set: stateful_set["status"]["readyReplicas"] == 1)
        await world.told(
            "Completed: Job completed (simulated by argosy)",
            "SuccessfulCreate: create Pod web-0 in StatefulSet web successful (simulated by argosy)",
        )


@pytest.mark.parametrize(
    ("hard", "manifest", "why"),
    [
        ({"pods": "0"}, pod(), "exceeded quota: compute, requested: pods=1, used: pods=0, limited: pods=0"),
        (
            {"requests.cpu": "1", "limits.memory": "1Gi"},
            asking(cpu="500m"),
            "failed quota: compute: must specify limits.memory for: main",
        ),
        (
            {"requests.memory": "1Gi"},
            asking(memory="2Gi"),
            "exceeded quota: compute, requested: requests.memory=2Gi, used: requests.memory=0, "
            "limited: requests.memory=1Gi",
        ),
        ({"requests.nvidia.com/gpu": "1"}, limited(**{"nvidia.com/gpu": "2"}), "requested: requests.nvidia.com/gpu=2"),
        (
            {"count/configmaps": "0"},
            {**build_manifest("v1", "ConfigMap", {}), "data": {}},
            "requested: count/configmaps=1",
        ),
        (
            {"services.loadbalancers": "0"},
            build_manifest("v1", "Service", {"type": "LoadBalancer", "ports": [{"port": 1}]}),
            "requested: services.loadbalancers=1",
        ),
    ],
)
async def test_objects_over_quota_are_rejected_on_create(
    cluster: EmbeddedCluster, hard: dict[str, str], manifest: Manifest, why: str
) -> None:
    await in_force(cluster, quota(hard=hard))
    manifest = {name: value for name, value in manifest.items() if name != "spec" or manifest["kind"] != "ConfigMap"}
    with pytest.raises(Forbidden) as refused:
        await cluster.create(manifest)
    assert why in refused.value.message and " is forbidden: " in refused.value.message


async def test_quota_scopes_select_the_pods_that_count(cluster: EmbeddedCluster) -> None:
    await in_force(cluster, quota("best", {"pods": "0"}, scopes=["BestEffort"]))
    await in_force(cluster, quota("ending", {"pods": "0"}, scopes=["Terminating"]))
    await cluster.create(asking(cpu="1"))
    with pytest.raises(Forbidden, match="exceeded quota: best"):
        await cluster.create({**pod(), "metadata": {"name": "other", "namespace": "default"}})
    ending = asking(cpu="1")
    ending["metadata"]["name"] = "third"
    ending["spec"]["activeDeadlineSeconds"] = 5
    with pytest.raises(Forbidden, match="exceeded quota: ending"):
        await cluster.create(ending)


async def test_finished_pods_release_their_quota(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(quota(hard={"pods": "1", "requests.cpu": "1"}))
        first = asking(cpu="1")
        first["spec"]["restartPolicy"] = "Never"
        await cluster.create(first)
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Succeeded")
        used = {"pods": "0", "requests.cpu": "0"}
        await world.becomes(RESOURCE_QUOTA, lambda manifest: manifest["status"]["used"] == used, "compute")
        second = asking(cpu="1")
        second["metadata"]["name"] = "second"
        await cluster.create(second)
        await world.becomes(
            RESOURCE_QUOTA, lambda manifest: manifest["status"]["used"] == {"pods": "1", "requests.cpu": "1"}, "compute"
        )


async def test_quota_status_counts_other_kinds_and_drops_removed_limits(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(quota(hard={"count/deployments.apps": "5", "secrets": "3", "requests.storage": "10Gi"}))
        await cluster.create(deployment(1))
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}
        await cluster.create(build_manifest("v1", "PersistentVolumeClaim", claim))
        used = {"count/deployments.apps": "1", "secrets": "0", "requests.storage": "2Gi"}
        await world.becomes(RESOURCE_QUOTA, lambda manifest: manifest["status"]["used"] == used, "compute")
        await world.patch(
            RESOURCE_QUOTA, {"spec": {"hard": {"secrets": None, "count/deployments.apps": None}}}, "compute"
        )
        await world.becomes(
            RESOURCE_QUOTA, lambda manifest: manifest["status"]["used"] == {"requests.storage": "2Gi"}, "compute"
        )
