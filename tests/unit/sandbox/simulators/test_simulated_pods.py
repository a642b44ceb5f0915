"""Pods that the simulators play, on the embedded cluster."""

from __future__ import annotations

import asyncio

import pytest

from argosy.errors import UserError
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import make
from support.deadlines import HANG_SECONDS
from support.simulators import CLAIM, POD, condition, fail, health, leaping, made, pod, simulated

pytestmark = pytest.mark.anyio


async def test_a_pod_is_scheduled_becomes_ready_and_says_that_it_is_simulated(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod())
        found = await world.becomes(POD, lambda it: condition(it, "Ready")["status"] == "True")
    status = found["status"]
    assert (found["spec"]["nodeName"], status["phase"]) == ("sandbox", "Running")
    assert status["podIP"].startswith("10.") and status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["containerStatuses"][0]["state"].keys() == {"running"}
    assert health(found) == ("Healthy", "simulated by argosy")


@pytest.mark.parametrize(
    ("fault", "reason", "judged"),
    [
        ("ImagePull", "ImagePullBackOff", "Degraded"),
        ("CrashLoop", "CrashLoopBackOff", "Degraded"),
        ("OOMKilled", "CrashLoopBackOff", "Degraded"),
        ("Exit", "CrashLoopBackOff", "Degraded"),
    ],
)
async def test_a_fault_keeps_a_pod_waiting_and_argo_cd_calls_it_degraded(
    cluster: EmbeddedCluster, fault: str, reason: str, judged: str
) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail(fault)))
        found = await world.becomes(
            POD, lambda it: it["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
        )
    assert health(found)[0] == judged and "simulated by argosy" in health(found)[1]
    if fault == "OOMKilled":
        ended = found["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_a_pod_that_is_not_ready_runs_and_progresses(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("NotReady")))
        found = await world.becomes(POD, lambda it: it["status"]["phase"] == "Running")
        await world.settled()
        found = await world.get(POD)
        assert condition(found, "Ready")["reason"] == "ContainersNotReady" and health(found)[0] == "Progressing"
        await world.patch(POD, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(POD, lambda it: condition(it, "Ready")["status"] == "True")


async def test_an_unschedulable_pod_is_pending_until_the_fault_is_taken_away(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Unschedulable")))
        found = await world.becomes(POD, lambda it: condition(it, "PodScheduled")["reason"] == "Unschedulable")
        assert found["status"]["phase"] == "Pending" and "nodeName" not in found["spec"]
        await world.patch(POD, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(POD, lambda it: condition(it, "Ready")["status"] == "True")


async def test_a_pod_that_asks_for_another_node_waits_until_that_node_is_there(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(nodeSelector={"disk": "fast"}))
        found = await world.becomes(POD, lambda it: condition(it, "PodScheduled")["status"] == "False")
        assert "didn't match Pod's node affinity/selector" in condition(found, "PodScheduled")["message"]
        await cluster.patch(ResourceKey("", "Node", "", "sandbox"), {"metadata": {"labels": {"disk": "fast"}}})
        await world.becomes(POD, lambda it: it["status"]["phase"] == "Running")


async def test_readiness_comes_after_the_delay_that_was_asked_for(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(pod({"sandbox.argosy.dev/ready-after": "20m"}))
        found = await world.becomes(POD, lambda it: it["status"]["phase"] == "Running")
        assert condition(found, "Ready")["status"] == "False"
        clock.leap(20 * 60)
        await world.becomes(POD, lambda it: condition(it, "Ready")["status"] == "True" or clock.leap(1))


@pytest.mark.parametrize(("fault", "phase"), [("", "Succeeded"), ("Exit", "Failed")])
async def test_a_pod_that_is_not_restarted_ends_at_once(cluster: EmbeddedCluster, fault: str, phase: str) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail(fault) if fault else None, restartPolicy="Never"))
        found = await world.becomes(POD, lambda it: it["status"]["phase"] == phase)
    assert health(found)[0] == ("Degraded" if fault else "Healthy")


async def test_a_container_that_fails_twice_is_well_the_third_time(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Exit", **{"fail-times": "1"}), restartPolicy="OnFailure"))
        found = await world.becomes(POD, lambda it: it["status"]["phase"] == "Succeeded")
    assert found["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_an_annotation_that_cannot_be_read_is_told_by_the_pod(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Sulks")))
        found = await world.becomes(POD, lambda it: it["status"]["containerStatuses"][0]["state"]["waiting"])
    assert "unknown fault Sulks; choose among: ImagePull, CrashLoop" in health(found)[1]


async def test_deletion_is_over_at_once_unless_the_pod_takes_its_time(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod({"sandbox.argosy.dev/stop-after": "20s"}))
        await world.becomes(POD, lambda it: it["status"]["phase"] == "Running")
        await cluster.delete(ResourceKey("", "Pod", "default", "web"))
        await world.settled()
        assert (await world.get(POD))["metadata"]["deletionGracePeriodSeconds"] == 30
        await world.patch(POD, {"metadata": {"annotations": {"sandbox.argosy.dev/stop-after": None}}})
        await world.pods_become(lambda found: not found)


async def test_a_finalizer_of_another_keeps_a_stopped_pod_as_failed(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        kept = pod()
        kept["metadata"]["finalizers"] = ["example.com/keep"]
        await cluster.create(kept)
        await world.becomes(POD, lambda it: it["status"]["phase"] == "Running")
        await cluster.delete(ResourceKey("", "Pod", "default", "web"))
        await world.becomes(POD, lambda it: it["status"]["phase"] == "Failed")
        await world.patch(POD, {"metadata": {"finalizers": None}})
        await world.pods_become(lambda found: not found)


async def test_a_pod_waits_for_its_claim(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await cluster.create(pod(volumes=volumes))
        found = await world.becomes(POD, lambda it: condition(it, "PodScheduled")["status"] == "False")
        assert 'persistentvolumeclaim "data" not found' in condition(found, "PodScheduled")["message"]
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = made("v1", "PersistentVolumeClaim", {**wanted, "storageClassName": "standard-wait"}, "data")
        await cluster.create(claim)
        await world.becomes(POD, lambda it: it["status"]["phase"] == "Running")
        assert (await world.get(CLAIM, "data"))["status"]["phase"] == "Bound"


async def test_pods_of_a_real_node_and_of_another_add_on_are_left_alone(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
        await cluster.create(pod(nodeName="real"))
        other = pod({"sandbox.argosy.dev/simulated": "by somebody"})
        other["metadata"]["name"] = "other"
        await cluster.create(other)
        await world.settled()
        assert [each["status"]["phase"] for each in await world.pods()] == ["Pending", "Pending"]


async def test_kinds_can_be_chosen_and_an_unknown_one_is_told() -> None:
    beside = ["simulated-pods", "simulated-claims", "simulated-nodes"]
    assert [each.name for each in make("kubelet").controllers] == beside
    assert "simulated-nodes" not in [each.name for each in make("").controllers]
    assert [each.name for each in make("ReplicaSet+Pod").controllers] == ["simulated-pods", "simulated-replicasets"]
    with pytest.raises(UserError, match=r"no simulator for kind Cat; choose among: simulators, "):
        make("Cat")
    assert GroupKind("", "Node").kind in {each["kind"] for each in make("").initial_manifests}


async def test_a_node_that_a_control_plane_gave_up_is_ready_again(cluster: EmbeddedCluster) -> None:
    node = ResourceKey("", "Node", "", "sandbox")
    async with simulated(cluster, "kubelet"):
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        other = {"type": "MemoryPressure", "status": "Unknown"}
        await cluster.patch(node, {"status": {"conditions": [lost, other]}}, subresource="status")
        async with asyncio.timeout(HANG_SECONDS):
            while condition(found := await cluster.get(node) or {}, "Ready")["status"] != "True":
                await asyncio.sleep(0.01)
    assert condition(found, "Ready")["lastHeartbeatTime"] and condition(found, "MemoryPressure")["status"] == "Unknown"


async def test_a_pod_that_is_active_for_too_long_is_failed(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(activeDeadlineSeconds=1))
        found = await world.becomes(POD, lambda it: it["status"]["phase"] == "Failed")
    assert found["status"]["reason"] == "DeadlineExceeded" and health(found)[0] == "Degraded"
