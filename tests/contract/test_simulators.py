"""The simulators on every kind of cluster; beside a real controller-manager they simulate only the remaining parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from argosy.gitops.health.builtin import assess_builtin
from argosy.kube.client import Cluster
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.simulators import make
from support.deadlines import HANG_SECONDS
from support.real_server import REAL

pytestmark = pytest.mark.anyio
POD, CLAIM = GroupKind("", "Pod"), GroupKind("", "PersistentVolumeClaim")
# One of these tests runs over the wire in every run; other test modules of this folder cover the request path.
MOSTLY_EMBEDDED = pytest.mark.parametrize(
    "flavour", ["embedded", pytest.param("wire", marks=pytest.mark.tier("all")), REAL], indirect=True
)
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


@pytest.fixture
async def played(flavour: Any) -> AsyncIterator[Cluster]:
    addon = make("kubelet" if flavour.name == "real" else "")
    cluster: Cluster = flavour.cluster
    try:
        async with run_addons([addon], cluster, on_failure=lambda: None):
            yield cluster
    finally:
        for manifest in addon.initial_manifests:  # a real server is shared with other tests
            await cluster.delete(key_of(manifest))


async def becomes(cluster: Cluster, key: ResourceKey, is_so: Callable[[Manifest], Any]) -> Manifest:
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            live_manifest = await cluster.get(key)
            if live_manifest is not None and is_so(live_manifest):
                return live_manifest
            await asyncio.sleep(0.02)


def is_healthy(live: Manifest) -> bool:
    status = live.get("status") or {}
    is_seen = status.get("observedGeneration", 0) == live["metadata"].get("generation") or live["kind"] == "Job"
    assessment = assess_builtin(live)
    return is_seen and assessment is not None and assessment.health == "Healthy"


def workload(kind: str, namespace: str, spec: Manifest, **pod: Any) -> Manifest:
    api = "batch/v1" if kind == "Job" else "apps/v1"
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "example:1"}], **pod},
    }
    selector = {} if kind == "Job" else {"selector": {"matchLabels": {"app": "web"}}}
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {"template": template, **selector, **spec}}


async def test_deployment_becomes_healthy_rolls_out_and_is_garbage_collected(played: Cluster, namespace: str) -> None:
    manifest = workload("Deployment", namespace, {"replicas": 2})
    await played.create(manifest)
    live = await becomes(played, key_of(manifest), is_healthy)
    assert live["status"]["availableReplicas"] == 2
    containers = {"containers": [{"name": "main", "image": "example:2"}]}
    await played.patch(key_of(manifest), {"spec": {"template": {"spec": containers}}})
    await becomes(played, key_of(manifest), is_healthy)
    await becomes(played, key_of(manifest), lambda deployment: deployment["status"]["replicas"] == 2)
    await played.delete(key_of(manifest))
    async with asyncio.timeout(HANG_SECONDS):
        while (await played.list(POD, namespace=namespace)).items:
            await asyncio.sleep(0.02)


@MOSTLY_EMBEDDED
async def test_job_completes_and_becomes_healthy(played: Cluster, namespace: str) -> None:
    job = workload("Job", namespace, {"completions": 2}, restartPolicy="Never")
    await played.create(job)
    live = await becomes(played, key_of(job), is_healthy)
    assert live["status"]["succeeded"] == 2


@MOSTLY_EMBEDDED
async def test_failed_job_becomes_degraded(played: Cluster, namespace: str) -> None:
    manifest = workload("Job", namespace, {"backoffLimit": 0}, restartPolicy="Never")
    manifest["metadata"]["annotations"] = {"sandbox.argosy.dev/fail": "Exit"}
    await played.create(manifest)
    live = await becomes(
        played, key_of(manifest), lambda job: (assessment := assess_builtin(job)) and assessment.health == "Degraded"
    )
    assert live["status"]["failed"] == 1


@MOSTLY_EMBEDDED
async def test_stateful_set_with_volume_claims_becomes_healthy(played: Cluster, namespace: str) -> None:
    claims = [{"metadata": {"name": "data"}, "spec": {**STORAGE, "storageClassName": "standard-wait"}}]
    stateful_set = workload(
        "StatefulSet", namespace, {"replicas": 2, "serviceName": "x", "volumeClaimTemplates": claims}
    )
    await played.create(stateful_set)
    await becomes(played, key_of(stateful_set), is_healthy)
    claims_found = (await played.list(CLAIM, namespace=namespace)).items
    assert [claim["status"]["phase"] for claim in claims_found] == ["Bound", "Bound"]


@MOSTLY_EMBEDDED
async def test_inference_service_becomes_ready_with_its_runtime(flavour: Any, played: Cluster, namespace: str) -> None:
    if flavour.name == "real":
        pytest.skip("real: the stories of a delivery show it there; it defines kinds, and this server is shared")
    about = {"name": "web", "namespace": namespace}
    container = {"name": "kserve-container", "image": "example:1"}
    formats = [{"name": "sklearn", "autoSelect": True}]
    runtime = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime", "metadata": about}
    await played.create({**runtime, "spec": {"supportedModelFormats": formats, "containers": [container]}})
    service = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": about}
    inference_service = {**service, "spec": {"predictor": {"sklearn": {"storageUri": "s3://models/web"}}}}
    await played.create(inference_service)

    def is_ready(live: Manifest) -> bool:
        conditions = (live.get("status") or {}).get("conditions") or ()
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    live = await becomes(played, key_of(inference_service), is_ready)
    assert live["spec"]["predictor"]["model"]["modelFormat"] == {"name": "sklearn"}
