"""Simulated scheduling: the choice of a node and the messages of unschedulable Pods."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema import pod_resources
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import node_and_storage_class_manifests, node_selection
from support.simulators import (
    DEPLOYMENT,
    NODE,
    POD,
    build_manifest,
    condition,
    deployment,
    fail,
    health,
    pod,
    simulated,
    template,
)

SMALL = {"cpu": "4", "memory": "8Gi", "pods": "3"}
NOT_HELPFUL = "Preemption is not helpful for scheduling"


def node(name: str, size: dict[str, str] | None = None, **more: Any) -> Manifest:
    return node_and_storage_class_manifests.build_node(name, "192.0.2.1", size or SMALL, **more)


def asking(**amounts: str) -> Manifest:
    resources = {"requests": {name.replace("gpu", "nvidia.com/gpu"): much for name, much in amounts.items()}}
    return pod(containers=[{"name": "main", "image": "example:1", "resources": resources}])


def why(pod_manifest: Manifest, *nodes: Manifest, taken: dict[str, str] | None = None) -> str:
    used = {name: Decimal(much) for name, much in (taken or {}).items()}
    chosen, sentence = node_selection.choose_node(pod_manifest, nodes, lambda _: used)
    return sentence if chosen is None else f"on {chosen['metadata']['name']}"


GPU_NODE = node("gpu", {**SMALL, "nvidia.com/gpu": "2"}, taints=[node_and_storage_class_manifests.GPU_TAINT])
TOLERATING: dict[str, Any] = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}
CORDONED = {**node("away"), "spec": {"unschedulable": True}}


@pytest.mark.parametrize(
    ("pod_manifest", "nodes", "expected"),
    [
        (pod(), [], "no nodes available to schedule pods"),
        (asking(cpu="1"), [node("a")], "on a"),
        (
            asking(cpu="5"),
            [node("a"), node("b")],
            f"0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}.",
        ),
        (
            asking(gpu="1"),
            [node("a"), GPU_NODE],
            "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, "
            "1 node(s) had untolerated taint {nvidia.com/gpu: }. "
            f"preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}.",
        ),
        (pod(nodeSelector={"disk": "fast"}), [node("a"), node("b", labels={"disk": "fast"})], "on b"),
        (
            pod(nodeSelector={"disk": "fast"}),
            [node("a"), CORDONED],
            "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) were unschedulable. "
            f"preemption: 0/2 nodes are available: 2 {NOT_HELPFUL}.",
        ),
        (pod(**TOLERATING), [GPU_NODE], "on gpu"),
        (pod(tolerations=[{"operator": "Exists"}]), [CORDONED], "on away"),
        (pod(tolerations=[{"key": "nvidia.com/gpu", "value": "x"}]), [GPU_NODE], "0/1 nodes"),
    ],
)
def test_pod_is_placed_on_a_fitting_node_or_reports_why_not(
    pod_manifest: Manifest, nodes: list[Manifest], expected: str
) -> None:
    assert why(pod_manifest, *nodes).startswith(expected)


def test_full_node_reports_no_preemption_victims() -> None:
    message = why(asking(cpu="2"), node("a"), taken={"cpu": "3", "pods": "3"})
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods. preemption: ")
    assert message.endswith("1 No preemption victims found for incoming pod.")


@pytest.mark.parametrize(
    ("term", "is_there"),
    [
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["3"]}]}, True),
        ({"matchExpressions": [{"key": "size", "operator": "Lt", "values": ["4"]}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["a"]}]}, False),
        ({}, False),
    ],
)
def test_required_node_affinity_is_respected(term: Manifest, is_there: bool) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    manifest = pod(affinity={"nodeAffinity": required})
    assert why(manifest, node("a", labels={"zone": "a", "size": "4"})).startswith("on a" if is_there else "0/1")


def test_scheduler_prefers_emptier_nodes_and_avoids_prefer_no_schedule() -> None:
    disliked = node("a", taints=[{"key": "old", "effect": "PreferNoSchedule"}])
    assert why(pod(), disliked, node("b")) == "on b"
    used = {"a": {"pods": Decimal(2)}, "b": {"pods": Decimal(1)}}
    chosen, _ = node_selection.choose_node(pod(), [node("a"), node("b")], lambda name: used[name])
    assert chosen is not None and chosen["metadata"]["name"] == "b"


def test_pod_requests_are_the_container_sum_or_the_largest_init_container() -> None:
    def part(cpu: str, **more: Any) -> Manifest:
        return {"name": "x", "resources": {"limits": {"cpu": cpu}}, **more}

    spec = {"containers": [part("1"), part("500m")], "initContainers": [part("3"), part("1", restartPolicy="Always")]}
    assert pod_resources.sum_requests(spec) == {"cpu": Decimal(3)}
    spec["initContainers"] = [part("1", restartPolicy="Always"), part("1")]
    assert pod_resources.sum_requests({**spec, "overhead": {"cpu": "100m"}}) == {"cpu": Decimal("2.6")}
    assert pod_resources.sum_limits({"containers": [{"name": "x"}]}) == {}


# -- on a cluster ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_gpus_are_allocated_to_pods_and_reused_when_freed(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        resources = {"limits": {"nvidia.com/gpu": "3"}}
        containers = [{"name": "main", "image": "example:1", "resources": resources}]
        manifest = deployment(3)
        manifest["spec"]["template"] = template(containers=containers, **TOLERATING)
        await cluster.create(manifest)
        pods = await world.pods_become(
            lambda live_pods: sum(bool(pod_manifest["spec"].get("nodeName")) for pod_manifest in live_pods) == 2
        )
        (waits,) = [pod_manifest for pod_manifest in pods if not pod_manifest["spec"].get("nodeName")]
        waiting_pod = await world.becomes(
            POD, lambda current_pod: condition(current_pod, "PodScheduled")["message"], waits["metadata"]["name"]
        )
        message = condition(waiting_pod, "PodScheduled")["message"]
        assert message == (
            "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. preemption: 0/2 nodes are available: "
            "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling. "
            "(simulated by argosy)"
        )
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 2}})
        await world.becomes(DEPLOYMENT, lambda live_deployment: health(live_deployment)[0] == "Healthy")
        runs = next(pod_manifest for pod_manifest in await world.pods() if pod_manifest["spec"].get("nodeName"))
        await cluster.create(build_manifest("v1", "Pod", manifest["spec"]["template"]["spec"], "late"))
        await world.becomes(POD, lambda live_pod: condition(live_pod, "PodScheduled")["status"] == "False", "late")
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 1}})
        await world.becomes(POD, lambda live_pod: live_pod["spec"]["nodeName"] == "sandbox-gpu", "late")
        assert runs["spec"]["nodeName"] == "sandbox-gpu"


@pytest.mark.anyio
async def test_unschedulable_fault_counts_all_nodes_and_emits_an_event(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(pod(fail("Unschedulable")))
        live_pod = await world.becomes(
            POD, lambda manifest: condition(manifest, "PodScheduled")["reason"] == "Unschedulable"
        )
        messages = await world.told("FailedScheduling")
    assert condition(live_pod, "PodScheduled")["message"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert messages[0].startswith("FailedScheduling: 0/2 nodes are available: 2 Insufficient cpu.")


@pytest.mark.anyio
async def test_uncordoned_node_takes_waiting_pods(cluster: EmbeddedCluster) -> None:
    sandbox = ResourceKey("", "Node", "", "sandbox")
    async with simulated(cluster) as world:
        assert {live_node["metadata"]["name"] for live_node in await world.all(NODE)} == {"sandbox", "sandbox-gpu"}
        await cluster.patch(sandbox, {"spec": {"unschedulable": True}})
        await cluster.create(pod())
        await world.becomes(
            POD, lambda manifest: "1 node(s) were unschedulable" in condition(manifest, "PodScheduled")["message"]
        )
        await cluster.patch(sandbox, {"spec": {"unschedulable": None}})
        await world.becomes(POD, lambda manifest: manifest["status"]["phase"] == "Running")
