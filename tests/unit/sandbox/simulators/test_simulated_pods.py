"""Simulated Pods on the embedded cluster."""

from __future__ import annotations

import asyncio

import pytest

from argosy.errors import UserError
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import make
from support.deadlines import HANG_SECONDS
from support.simulators import CLAIM, POD, build_manifest, condition, fail, health, leaping, pod, simulated

pytestmark = pytest.mark.anyio


async def test_pod_is_scheduled_becomes_ready_and_is_marked_as_simulated(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod())
        live_pod = await world.becomes(POD, lambda manifest: condition(manifest, "Ready")["status"] == "True")
    status = live_pod["status"]
    assert (live_pod["spec"]["nodeName"], status["phase"]) == ("sandbox", "Running")
    assert status["podIP"].startswith("10.") and status["podIPs"] == [{"ip": status["podIP"]}]
    assert status["containerStatuses"][0]["state"].keys() == {"running"}
    assert health(live_pod) == ("Healthy", "")
    assert condition(live_pod, "sandbox.argosy.dev/Simulated")["message"] == "simulated by argosy"


@pytest.mark.parametrize(
    ("fault", "reason", "judged"),
    [
        ("ImagePull", "ImagePullBackOff", "Degraded"),
        ("CrashLoop", "CrashLoopBackOff", "Degraded"),
        ("OOMKilled", "CrashLoopBackOff", "Degraded"),
        ("Exit", "CrashLoopBackOff", "Degraded"),
    ],
)
async def test_faulty_pod_keeps_waiting_and_is_degraded(
    cluster: EmbeddedCluster, fault: str, reason: str, judged: str
) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail(fault)))
        live_pod = await world.becomes(
            POD, lambda manifest: manifest["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
        )
    assert health(live_pod)[0] == judged and "simulated by argosy" in health(live_pod)[1]
    if fault == "OOMKilled":
        ended = live_pod["status"]["containerStatuses"][0]["lastState"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_pod_with_an_invalid_image_name_waits_and_is_progressing(cluster: EmbeddedCluster) -> None:
    containers = [{"name": "main", "image": "alpine:ops!"}, {"name": "side", "image": "example:1"}]
    async with simulated(cluster) as world:
        await cluster.create(pod(containers=containers))
        live_pod = await world.becomes(
            POD, lambda manifest: manifest["status"]["containerStatuses"][0]["state"]["waiting"]
        )
        await world.told("InspectFailed: Failed to apply default image tag", "Failed: Error: InvalidImageName")
    main, side = (status["state"]["waiting"] for status in live_pod["status"]["containerStatuses"])
    assert main["reason"] == "InvalidImageName" and side["reason"] == "ContainerCreating"
    assert 'couldn\'t parse image name "alpine:ops!": invalid reference format' in main["message"]
    assert live_pod["status"]["phase"] == "Pending" and health(live_pod)[0] == "Progressing"


async def test_not_ready_pod_is_running_and_progressing(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("NotReady")))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        await world.settled()
        live_pod = await world.get(POD)
        assert condition(live_pod, "Ready")["reason"] == "ContainersNotReady" and health(live_pod)[0] == "Progressing"
        await world.patch(POD, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(POD, lambda manifest: condition(manifest, "Ready")["status"] == "True")


async def test_unschedulable_pod_is_pending_until_the_fault_is_removed(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Unschedulable")))
        live_pod = await world.becomes(
            POD, lambda manifest: condition(manifest, "PodScheduled")["reason"] == "Unschedulable"
        )
        assert live_pod["status"]["phase"] == "Pending" and "nodeName" not in live_pod["spec"]
        await world.patch(POD, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(POD, lambda manifest: condition(manifest, "Ready")["status"] == "True")


async def test_pod_with_a_node_selector_waits_for_a_matching_node(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(nodeSelector={"disk": "fast"}))
        live_pod = await world.becomes(POD, lambda manifest: condition(manifest, "PodScheduled")["status"] == "False")
        assert "didn't match Pod's node affinity/selector" in condition(live_pod, "PodScheduled")["message"]
        await cluster.patch(ResourceKey("", "Node", "", "sandbox"), {"metadata": {"labels": {"disk": "fast"}}})
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")


async def test_pod_becomes_ready_after_the_annotated_delay(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(pod({"sandbox.argosy.dev/ready-after": "20m"}))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        assert condition(live_pod, "Ready")["status"] == "False"
        clock.leap(20 * 60)
        await world.becomes(POD, lambda manifest: condition(manifest, "Ready")["status"] == "True" or clock.leap(1))


@pytest.mark.parametrize(("fault", "phase"), [("", "Succeeded"), ("Exit", "Failed")])
async def test_pod_with_restart_policy_never_ends_immediately(cluster: EmbeddedCluster, fault: str, phase: str) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail(fault) if fault else None, restartPolicy="Never"))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == phase)
    assert health(live_pod)[0] == ("Degraded" if fault else "Healthy")


async def test_container_that_fails_once_succeeds_after_one_restart(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Exit", **{"fail-times": "1"}), restartPolicy="OnFailure"))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Succeeded")
    assert live_pod["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_unknown_fault_annotation_is_reported_in_pod_health(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Sulks")))
        live_pod = await world.becomes(
            POD, lambda manifest: manifest["status"]["containerStatuses"][0]["state"]["waiting"]
        )
    assert "unknown fault Sulks; choose among: ImagePull, CrashLoop" in health(live_pod)[1]


async def test_stop_after_annotation_delays_pod_deletion(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod({"sandbox.argosy.dev/stop-after": "20s"}))
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        await cluster.delete(ResourceKey("", "Pod", "default", "web"))
        await world.settled()
        assert (await world.get(POD))["metadata"]["deletionGracePeriodSeconds"] == 30
        await world.patch(POD, {"metadata": {"annotations": {"sandbox.argosy.dev/stop-after": None}}})
        await world.pods_become(lambda pods: not pods)


async def test_foreign_finalizer_keeps_a_stopped_pod_as_failed(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        manifest = pod()
        manifest["metadata"]["finalizers"] = ["example.com/keep"]
        await cluster.create(manifest)
        await world.becomes(POD, lambda current_pod: current_pod["status"]["phase"] == "Running")
        await cluster.delete(ResourceKey("", "Pod", "default", "web"))
        await world.becomes(POD, lambda current_pod: current_pod["status"]["phase"] == "Failed")
        await world.patch(POD, {"metadata": {"finalizers": None}})
        await world.pods_become(lambda pods: not pods)


async def test_pod_waits_for_its_pvc(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
        await cluster.create(pod(volumes=volumes))
        live_pod = await world.becomes(POD, lambda manifest: condition(manifest, "PodScheduled")["status"] == "False")
        assert 'persistentvolumeclaim "data" not found' in condition(live_pod, "PodScheduled")["message"]
        claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = build_manifest(
            "v1", "PersistentVolumeClaim", {**claim_spec, "storageClassName": "standard-wait"}, "data"
        )
        await cluster.create(claim)
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
        assert (await world.get(CLAIM, "data"))["status"]["phase"] == "Bound"


async def test_pods_of_real_nodes_and_other_add_ons_are_left_alone(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}})
        await cluster.create(pod(nodeName="real"))
        other = pod({"sandbox.argosy.dev/simulated": "by somebody"})
        other["metadata"]["name"] = "other"
        await cluster.create(other)
        await world.settled()
        assert [live_pod["status"]["phase"] for live_pod in await world.pods()] == ["Pending", "Pending"]


async def test_simulated_kinds_can_be_chosen_and_unknown_kinds_are_rejected() -> None:
    beside = ["simulated-pods", "simulated-claims", "simulated-nodes"]
    assert [controller.name for controller in make("kubelet").controllers] == beside
    assert "simulated-nodes" not in [controller.name for controller in make("").controllers]
    assert [controller.name for controller in make("ReplicaSet+Pod").controllers] == [
        "simulated-pods",
        "simulated-replicasets",
    ]
    with pytest.raises(UserError, match=r"no simulator for kind Cat; choose among: simulators, "):
        make("Cat")
    assert GroupKind("", "Node").kind in {manifest["kind"] for manifest in make("").initial_manifests}


async def test_node_marked_unknown_becomes_ready_again(cluster: EmbeddedCluster) -> None:
    node = ResourceKey("", "Node", "", "sandbox")
    async with simulated(cluster, "kubelet"):
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        other = {"type": "MemoryPressure", "status": "Unknown"}
        await cluster.patch(node, {"status": {"conditions": [lost, other]}}, subresource="status")
        async with asyncio.timeout(HANG_SECONDS):
            while condition(live_node := await cluster.get(node) or {}, "Ready")["status"] != "True":
                await asyncio.sleep(0.01)
    assert (
        condition(live_node, "Ready")["lastHeartbeatTime"]
        and condition(live_node, "MemoryPressure")["status"] == "Unknown"
    )


async def test_pod_past_its_active_deadline_fails(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(activeDeadlineSeconds=1))
        live_pod = await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Failed")
    assert live_pod["status"]["reason"] == "DeadlineExceeded" and health(live_pod)[0] == "Degraded"
