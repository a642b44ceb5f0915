"""Simulated Deployments and ReplicaSets on the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.client import Propagation
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS, wait_until_async
from support.simulators import (
    DEPLOYMENT,
    POD,
    REPLICA_SET,
    World,
    build_manifest,
    condition,
    deployment,
    fail,
    health,
    key,
    simulated,
    template,
)
from support.tiers import in_test_all

pytestmark = pytest.mark.anyio
REVISION = "deployment.kubernetes.io/revision"


def image(name: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": name}]}}}}


def is_done(live: Manifest) -> bool:
    return health(live)[0] == "Healthy" and live["status"]["observedGeneration"] == live["metadata"]["generation"]


async def test_deployment_becomes_healthy_and_then_writes_nothing(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(3))
        live = await world.becomes(DEPLOYMENT, is_done)
        before = await world.settled()
        live = await world.get(DEPLOYMENT)
        assert await world.settled() == before
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    assert [live["status"][field] for field in counts] == [3, 3, 3, 3]
    assert condition(live, "Available")["message"] == "Deployment has minimum availability. (simulated by argosy)"
    assert condition(live, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert live["metadata"]["annotations"][REVISION] == "1"
    (only,) = await world.all(REPLICA_SET)
    assert health(only) == ("Healthy", "")
    assert only["metadata"]["name"] == f"web-{only['metadata']['labels']['pod-template-hash']}"


async def test_rolling_update_respects_its_bounds_and_keeps_the_old_replica_set(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}
        await cluster.create(deployment(4, {"sandbox.argosy.dev/ready-after": "100ms"}, strategy=strategy))
        await world.becomes(DEPLOYMENT, is_done)
        await world.patch(DEPLOYMENT, image("example:2"))
        sizes = await _sizes_until_done(world)
        sets = await world.all(REPLICA_SET)
    assert max(total for total, _ in sizes) <= 5 and min(available for _, available in sizes) >= 3
    assert sorted((rs["metadata"]["annotations"][REVISION], rs["spec"]["replicas"]) for rs in sets) == [
        ("1", 0), ("2", 4),
    ]  # fmt: skip


async def _sizes_until_done(world: World) -> list[tuple[int, int]]:
    """Return the counts of Pods and of ready Pods at every observed moment of the rollout."""
    sizes = []
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            pods = [pod for pod in await world.pods() if not pod["metadata"].get("deletionTimestamp")]
            ready = [pod for pod in pods if condition(pod, "Ready")["status"] == "True"]
            sizes.append((len(pods), len(ready)))
            live = await world.get(DEPLOYMENT)
            if is_done(live) and {pod["spec"]["containers"][0]["image"] for pod in pods} == {"example:2"}:
                return sizes
            await asyncio.sleep(0.005)


async def test_recreate_deletes_all_old_pods_before_creating_new_ones(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(2, strategy={"type": "Recreate"}))
        await world.becomes(DEPLOYMENT, is_done)
        await world.patch(DEPLOYMENT, image("example:2"))
        async with asyncio.timeout(HANG_SECONDS):
            images: set[str] = set()
            while images != {"example:2"}:
                images = {pod["spec"]["containers"][0]["image"] for pod in await world.pods()}
                assert len(images) <= 1
                await asyncio.sleep(0.002)
        await world.becomes(DEPLOYMENT, is_done)


async def test_rollback_gives_the_old_replica_set_a_new_revision(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment())
        for name in ("example:2", "example:1"):
            await world.becomes(DEPLOYMENT, is_done)
            await world.patch(DEPLOYMENT, image(name))
        await world.becomes(
            DEPLOYMENT, lambda manifest: is_done(manifest) and manifest["metadata"]["annotations"][REVISION] == "3"
        )
        sets = await world.all(REPLICA_SET)
    assert sorted(replica_set["metadata"]["annotations"][REVISION] for replica_set in sets) == ["2", "3"]


async def test_old_replica_sets_are_pruned_to_the_revision_history_limit(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(revisionHistoryLimit=1))
        for number in range(2, 5):
            await world.becomes(DEPLOYMENT, is_done)
            await world.patch(DEPLOYMENT, image(f"example:{number}"))
        await world.becomes(
            DEPLOYMENT, lambda manifest: is_done(manifest) and manifest["metadata"]["annotations"][REVISION] == "4"
        )

        async def are_few() -> bool:
            sets = await world.all(REPLICA_SET)
            return sorted(replica_set["metadata"]["annotations"][REVISION] for replica_set in sets) == ["3", "4"]

        await wait_until_async(are_few, "older ones are deleted")
        await world.settled()
        assert await are_few()


async def test_paused_deployment_does_not_roll_out_but_can_be_scaled(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment())
        await world.becomes(DEPLOYMENT, is_done)
        await world.patch(DEPLOYMENT, {"spec": {"paused": True, "replicas": 2, **image("example:2")["spec"]}})
        await world.pods_become(lambda pods: len(pods) == 2)
        await world.settled()
        assert len(await world.all(REPLICA_SET)) == 1
        live = await world.get(DEPLOYMENT)
        assert health(live) == ("Suspended", "Deployment is paused")
        assert condition(live, "Progressing")["reason"] == "DeploymentPaused"
        await world.patch(DEPLOYMENT, {"spec": {"paused": False}})
        await world.becomes(DEPLOYMENT, is_done)
        assert {pod["spec"]["containers"][0]["image"] for pod in await world.pods()} == {"example:2"}


@pytest.mark.parametrize(
    "fault", ["CrashLoop", "Unschedulable", *(in_test_all(fault) for fault in ("ImagePull", "NotReady", "OOMKilled"))]
)
async def test_faulty_deployment_is_degraded_after_its_progress_deadline(cluster: EmbeddedCluster, fault: str) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(1, fail(fault), progressDeadlineSeconds=2))
        live = await world.becomes(DEPLOYMENT, lambda manifest: condition(manifest, "Progressing")["reason"])
        assert health(live)[0] == "Progressing" and condition(live, "Available")["status"] == "False"
        live = await world.becomes(DEPLOYMENT, lambda manifest: health(manifest)[0] == "Degraded")
        assert condition(live, "Progressing")["reason"] == "ProgressDeadlineExceeded"
        well = {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}}
        await world.patch(DEPLOYMENT, {"spec": {"template": well}})
        await world.becomes(DEPLOYMENT, is_done)


async def test_fault_annotation_on_the_deployment_affects_running_pods(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(2))
        await world.becomes(DEPLOYMENT, is_done)
        await world.patch(DEPLOYMENT, {"metadata": {"annotations": fail("NotReady")}})
        live = await world.becomes(DEPLOYMENT, lambda manifest: manifest["status"].get("availableReplicas", 0) == 0)
        assert condition(live, "Available")["status"] == "False"
        await world.patch(DEPLOYMENT, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(DEPLOYMENT, is_done)
        assert len(await world.all(REPLICA_SET)) == 1


async def test_evicted_pod_stays_failed_and_is_replaced_once(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(1, fail("Evicted", **{"run-for": "100ms"})))
        await world.pods_become(lambda pods: sorted(pod["status"]["phase"] for pod in pods) == ["Failed", "Running"])
        await world.settled()
        pods = await world.pods()
        evicted = [pod["status"].get("reason") for pod in pods if pod["status"]["phase"] == "Failed"]
        assert evicted == ["Evicted"] and len(pods) == 2
        await world.becomes(DEPLOYMENT, is_done)


async def test_deployment_scales_to_zero_and_back(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(3))
        await world.becomes(DEPLOYMENT, is_done)
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 0}})
        await world.pods_become(lambda pods: not pods)
        await world.becomes(DEPLOYMENT, lambda manifest: is_done(manifest) and "replicas" not in manifest["status"])
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 2}})
        live = await world.becomes(DEPLOYMENT, is_done)
        assert live["status"]["availableReplicas"] == 2


async def test_deleted_pod_is_replaced(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(2))
        await world.becomes(DEPLOYMENT, is_done)
        gone, *_ = await world.pods()
        await cluster.delete(key(POD, gone["metadata"]["name"]))

        def is_replaced(pods: list[Manifest]) -> bool:
            return len(pods) == 2 and gone["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in pods}

        await world.pods_become(is_replaced)
        await world.becomes(DEPLOYMENT, is_done)


async def test_new_deployment_adopts_orphaned_replica_sets_and_pods(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(2))
        await world.becomes(DEPLOYMENT, is_done)
        before = {pod["metadata"]["uid"] for pod in await world.pods()}
        await cluster.delete(key(DEPLOYMENT, "web"), propagation=Propagation.ORPHAN)
        async with asyncio.timeout(HANG_SECONDS):
            while (await world.all(REPLICA_SET))[0]["metadata"].get("ownerReferences"):
                await asyncio.sleep(0.01)
        await world.becomes(DEPLOYMENT, lambda manifest: "uid" not in manifest["metadata"])
        await cluster.create(deployment(2))
        await world.becomes(DEPLOYMENT, is_done)
        assert {pod["metadata"]["uid"] for pod in await world.pods()} == before
        assert len(await world.all(REPLICA_SET)) == 1


async def test_rollout_completes_after_repeated_controller_restarts(cluster: EmbeddedCluster) -> None:
    world = World(cluster)
    await cluster.create(deployment(4))
    for _ in range(15):
        async with simulated(cluster):
            await asyncio.sleep(0)
            revision_before = cluster.plane.store.revision
            async with asyncio.timeout(HANG_SECONDS):
                while cluster.plane.store.revision < revision_before + 2 and not is_seen(await world.get(DEPLOYMENT)):
                    await asyncio.sleep(0)
    async with simulated(cluster):
        await world.becomes(DEPLOYMENT, is_done)
    assert len(await world.pods()) == 4 and len(await world.all(REPLICA_SET)) == 1


def is_seen(live: Manifest) -> bool:
    return bool((live.get("status") or {}).get("availableReplicas") == 4)


async def test_standalone_replica_set_creates_pods_and_becomes_healthy(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template()}
        await cluster.create(build_manifest("apps/v1", "ReplicaSet", spec))
        live = await world.becomes(REPLICA_SET, lambda replica_set: replica_set["status"]["readyReplicas"] == 2)
        assert health(live) == ("Healthy", "")
        await cluster.delete(key(REPLICA_SET, "web"))
        await world.pods_become(lambda pods: not pods)


async def test_failed_pod_creation_is_reported_by_replica_set_and_deployment(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        manifest = deployment(1)
        manifest["spec"]["template"]["spec"]["serviceAccountName"] = "missing"
        await cluster.create(manifest)
        live = await world.becomes(
            DEPLOYMENT, lambda live_deployment: condition(live_deployment, "ReplicaFailure")["status"] == "True"
        )
        message = condition(live, "ReplicaFailure")["message"]
        assert 'serviceaccount "missing" not found (simulated by argosy)' in message
        (only,) = await world.all(REPLICA_SET)
        assert health(only)[0] == "Degraded"


def is_stuck(live: Manifest) -> bool:
    return bool(live["status"]["replicas"] == 5 and live["status"]["updatedReplicas"] == 2)


async def test_scaling_a_stuck_rollout_grows_both_replica_sets(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(deployment(4))
        await world.becomes(DEPLOYMENT, is_done)
        await world.patch(DEPLOYMENT, image("example:does-not-exist"))
        await world.becomes(DEPLOYMENT, is_stuck)
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 8}})

        def has_grown(live: Manifest) -> bool:
            counts = ("replicas", "availableReplicas", "updatedReplicas")
            return [live["status"].get(field) for field in counts] == [10, 6, 4]

        await world.becomes(DEPLOYMENT, has_grown)
        await world.settled()
        assert has_grown(await world.get(DEPLOYMENT))
