"""Simulated DaemonSets on the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import node_and_storage_class_manifests
from support.deadlines import HANG_SECONDS
from support.simulators import (
    DAEMON_SET,
    POD,
    World,
    build_manifest,
    condition,
    fail,
    health,
    leaping,
    simulated,
    template,
)

pytestmark = pytest.mark.anyio


def daemon_set(annotations: dict[str, str] | None = None, pod: dict[str, Any] | None = None, **spec: Any) -> Manifest:
    about = {"selector": {"matchLabels": {"app": "web"}}, "template": template(annotations, **(pod or {}))}
    return build_manifest("apps/v1", "DaemonSet", {**about, **spec})


def is_done(live: Manifest) -> bool:
    status = live["status"]
    is_seen = status["observedGeneration"] == live["metadata"]["generation"] and status.get("desiredNumberScheduled")
    return bool(is_seen) and health(live)[0] == "Healthy"


async def three_nodes(cluster: EmbeddedCluster) -> None:
    for number in (2, 3):
        await cluster.create(
            node_and_storage_class_manifests.build_node(
                f"node-{number}", f"192.0.2.2{number}", node_and_storage_class_manifests.NODE_CAPACITY
            )
        )


async def images(world: World) -> list[str]:
    alive = [pod for pod in await world.pods() if not pod["metadata"].get("deletionTimestamp")]
    return sorted(pod["spec"]["containers"][0]["image"] for pod in alive)


async def test_daemon_set_runs_one_pod_on_each_eligible_node(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await three_nodes(cluster)
        await cluster.create(daemon_set())
        live = await world.becomes(
            DAEMON_SET, lambda manifest: is_done(manifest) and manifest["status"]["numberReady"] == 3
        )
        pods = await world.pods()
        assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-2", "node-3", "sandbox"]
        counts = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        assert [live["status"][field] for field in counts] == [3, 3, 3]
        before = await world.settled()
        assert await world.settled() == before
        await world.told("SuccessfulCreate: Created pod: web-")


async def test_tolerations_and_node_selector_decide_the_nodes(
    cluster: EmbeddedCluster,
) -> None:
    async with simulated(cluster) as world:
        pod = {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"nvidia.com/gpu.present": "true"}}
        await cluster.create(daemon_set(pod=pod))
        await world.becomes(DAEMON_SET, is_done)
        assert [live_pod["spec"]["nodeName"] for live_pod in await world.pods()] == ["sandbox-gpu"]


async def test_daemon_set_follows_added_and_removed_nodes(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(daemon_set())
        await world.becomes(DAEMON_SET, is_done)
        await cluster.create(
            node_and_storage_class_manifests.build_node(
                "late", "192.0.2.30", node_and_storage_class_manifests.NODE_CAPACITY
            )
        )
        await world.becomes(DAEMON_SET, lambda manifest: manifest["status"]["numberReady"] == 2)
        await cluster.delete(ResourceKey("", "Node", "", "late"))
        await world.becomes(DAEMON_SET, lambda manifest: manifest["status"]["desiredNumberScheduled"] == 1)


async def test_new_template_rolls_out_one_node_at_a_time(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await three_nodes(cluster)
        await cluster.create(daemon_set({"sandbox.argosy.dev/ready-after": "50ms"}))
        await world.becomes(DAEMON_SET, lambda manifest: is_done(manifest) and manifest["status"]["numberReady"] == 3)
        containers = [{"name": "main", "image": "example:2"}]
        await world.patch(DAEMON_SET, {"spec": {"template": {"spec": {"containers": containers}}}})
        fewest = 3
        async with asyncio.timeout(HANG_SECONDS):
            while await images(world) != ["example:2"] * 3:
                ready = [pod for pod in await world.pods() if condition(pod, "Ready")["status"] == "True"]
                fewest = min(fewest, len(ready))
                await asyncio.sleep(0.005)
        await world.becomes(DAEMON_SET, is_done)
        revisions = await world.all(GroupKind("apps", "ControllerRevision"))
    assert fewest >= 2
    assert sorted(revision["revision"] for revision in revisions) == [1, 2]


async def test_max_surge_keeps_the_old_pod_until_the_new_one_is_ready(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await three_nodes(cluster)
        rolling = {"maxSurge": 1, "maxUnavailable": 0}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        await cluster.create(daemon_set(updateStrategy=strategy))
        await world.becomes(DAEMON_SET, lambda manifest: is_done(manifest) and manifest["status"]["numberReady"] == 3)
        containers = [{"name": "main", "image": "example:does-not-exist"}]
        await world.patch(DAEMON_SET, {"spec": {"template": {"spec": {"containers": containers}}}})
        await world.pods_become(lambda pods: len(pods) == 4)
        await world.settled()
        live = await world.get(DAEMON_SET)
        assert (await images(world)).count("example:1") == 3 and health(live)[0] == "Progressing"
        containers = [{"name": "main", "image": "example:2"}]
        await world.patch(DAEMON_SET, {"spec": {"template": {"spec": {"containers": containers}}}})
        await world.becomes(
            DAEMON_SET, lambda manifest: is_done(manifest) and manifest["status"]["updatedNumberScheduled"] == 3
        )
        await world.pods_become(lambda pods: len(pods) == 3)


async def test_on_delete_strategy_keeps_old_pods_until_they_are_deleted(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(daemon_set(updateStrategy={"type": "OnDelete"}))
        await world.becomes(DAEMON_SET, lambda manifest: manifest["status"]["numberReady"] == 1)
        containers = [{"name": "main", "image": "example:2"}]
        await world.patch(DAEMON_SET, {"spec": {"template": {"spec": {"containers": containers}}}})
        await world.settled()
        (old,) = await world.pods()
        assert await images(world) == ["example:1"]
        await cluster.delete(ResourceKey("", "Pod", "default", old["metadata"]["name"]))
        await world.pods_become(lambda pods: [pod["spec"]["containers"][0]["image"] for pod in pods] == ["example:2"])


@pytest.mark.parametrize("fault", ["ImagePull", "CrashLoop", "NotReady", "OOMKilled", "Unschedulable", "Storage"])
async def test_faulty_daemon_set_is_progressing_until_the_fault_is_removed(
    cluster: EmbeddedCluster, fault: str
) -> None:
    async with simulated(cluster) as world:
        manifest = daemon_set()
        manifest["metadata"]["annotations"] = fail(fault)
        await cluster.create(manifest)
        live = await world.becomes(
            DAEMON_SET, lambda live_daemon_set: live_daemon_set["status"]["currentNumberScheduled"] == 1
        )
        assert health(live)[0] == "Progressing"
        await world.patch(DAEMON_SET, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(DAEMON_SET, is_done)


async def test_evicted_daemon_pod_is_replaced_once(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        manifest = daemon_set()
        manifest["metadata"]["annotations"] = fail("Evicted")
        await cluster.create(manifest)
        await world.becomes(DAEMON_SET, is_done)
        (first,) = await world.pods()
        clock.leap(6)
        await world.told("FailedDaemonPod: Found failed daemon pod default/")
        await world.becomes(DAEMON_SET, is_done)
        (second,) = await world.pods_become(lambda pods: len(pods) == 1 and pods[0]["status"]["phase"] == "Running")
        clock.leap(60)
        await world.settled()
        assert (await world.get(POD, second["metadata"]["name"]))["metadata"]["uid"] == second["metadata"]["uid"]
        assert first["metadata"]["uid"] != second["metadata"]["uid"]
