"""Every injectable fault on each workload kind: health as Argo CD assesses it, and the outcome."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.simulators import (
    DEPLOYMENT,
    JOB,
    REPLICA_SET,
    STATEFUL_SET,
    build_manifest,
    condition,
    deployment,
    fail,
    health,
    leaping,
    template,
)

pytestmark = pytest.mark.anyio
SELECTOR = {"selector": {"matchLabels": {"app": "web"}}}
FAULTS = {
    "ImagePull": "Degraded",
    "CrashLoop": "Degraded",
    "OOMKilled": "Degraded",
    "NotReady": "Progressing",
    "Unschedulable": "Progressing",
    "Storage": "Progressing",
    "Slow": "Progressing",
}
WORKLOADS: dict[GroupKind, Manifest] = {
    DEPLOYMENT: deployment(1),
    REPLICA_SET: build_manifest("apps/v1", "ReplicaSet", {**SELECTOR, "template": template()}),
    STATEFUL_SET: build_manifest("apps/v1", "StatefulSet", {**SELECTOR, "serviceName": "web", "template": template()}),
}

# Faults on the Pod template always run; of the faults on the workload itself, only CrashLoop always runs.
ROWS = [
    pytest.param(
        fault, kind, where, id=f"{fault}-{kind.kind}-{'template' if where else 'itself'}",
        marks=() if where or fault == "CrashLoop" else pytest.mark.tier("all"),
    )
    for fault in FAULTS for kind in WORKLOADS for where in (True, False)
]  # fmt: skip


def faulty(workload: Manifest, fault: str, *, on_template: bool) -> Manifest:
    annotations = fail(fault)
    if not on_template:
        return {**workload, "metadata": {**workload["metadata"], "annotations": annotations}}
    pods = workload["spec"]["template"]
    noted = {**pods, "metadata": {**pods["metadata"], "annotations": annotations}}
    return {**workload, "spec": {**workload["spec"], "template": noted}}


def seen(live: Manifest) -> bool:
    return bool(live["status"]["observedGeneration"] == live["metadata"]["generation"])


@pytest.mark.parametrize(("fault", "kind", "on_template"), ROWS)
async def test_faulty_workload_is_progressing_and_its_pod_shows_the_fault(
    cluster: EmbeddedCluster, fault: str, kind: GroupKind, on_template: bool
) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(faulty(WORKLOADS[kind], fault, on_template=on_template))
        await world.pods_become(lambda pods: [health(pod)[0] for pod in pods] == [FAULTS[fault]] and _noted(pods))
        live = await world.becomes(kind, seen)
        assert health(live)[0] == "Progressing"
        if fault == "Slow":
            clock.leap(31)
            await world.becomes(
                kind, lambda workload: (seen(workload) and health(workload)[0] == "Healthy") or clock.leap(1)
            )


def _noted(pods: list[Manifest]) -> bool:
    """True if a simulator has processed the Pods: a new Pod is Progressing as well."""
    return all(pod["status"].get("startTime") or condition(pod, "PodScheduled")["status"] == "False" for pod in pods)


@pytest.mark.parametrize("kind", WORKLOADS, ids=[workload.kind for workload in WORKLOADS])
async def test_evicted_pod_is_replaced_once_for_each_owner_kind(cluster: EmbeddedCluster, kind: GroupKind) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(faulty(WORKLOADS[kind], "Evicted", on_template=False))
        await world.becomes(kind, lambda workload: seen(workload) and health(workload)[0] == "Healthy")
        (first,) = await world.pods()
        clock.leap(6)
        await world.told("Evicted: The node was low on resource: memory.")
        await world.pods_become(lambda pods: any(_uid(pod) != _uid(first) and _runs(pod) for pod in pods))
        await world.becomes(kind, lambda workload: health(workload)[0] == "Healthy")
        clock.leap(60)
        await world.settled()
        assert len([pod for pod in await world.pods() if _runs(pod)]) == 1


@pytest.mark.parametrize(
    ("fault", "judged"),
    [("CrashLoop", "Degraded"), ("OOMKilled", "Degraded"), ("ImagePull", "Progressing"), ("Storage", "Progressing")],
)
async def test_job_fails_if_a_pod_fails_and_waits_if_it_cannot_start(
    cluster: EmbeddedCluster, fault: str, judged: str
) -> None:
    job = build_manifest("batch/v1", "Job", {"backoffLimit": 0, "template": template(restartPolicy="Never")})
    async with leaping(cluster) as (world, _):
        await cluster.create(faulty(job, fault, on_template=True))
        live: Any = await world.becomes(
            JOB, lambda manifest: health(manifest)[0] == judged and manifest["status"]["startTime"]
        )
        if judged == "Progressing":
            await world.settled()
            assert health(await world.get(JOB))[0] == judged
        else:
            assert live["status"]["failed"] == 1


def _uid(manifest: Manifest) -> str:
    return str(manifest["metadata"]["uid"])


def _runs(pod: Manifest) -> bool:
    return bool(pod["status"].get("phase") == "Running")
