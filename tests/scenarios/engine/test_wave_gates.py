"""What blocks a sync wave: a PVC that waits for its first consumer, a notebook that has not succeeded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.client import Cluster
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.simulators import make
from support.deadlines import HANG_SECONDS
from support.engine import Room, config_map
from support.tiers import IN_TEST_ALL

pytestmark = pytest.mark.anyio
WAVE = "argocd.argoproj.io/sync-wave"
NOTEBOOK = ResourceKey("mlops.mlops.dev", "NotebookValidationJob", "ml", "train")
MODEL = {**config_map("model"), "metadata": {"name": "model", "annotations": {WAVE: "2"}}}


@pytest.fixture
async def played(room: Room) -> AsyncIterator[Room]:
    async with run_addons([make("kubelet" if room.flavour == "real" else "")], room.cluster, on_failure=lambda: None):
        yield room


def claim() -> Manifest:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec["storageClassName"] = "standard-wait"
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def reader() -> Manifest:
    """Build a Job of a later wave: the first consumer of the PVC."""
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    mounts = [{"name": "data", "mountPath": "/data"}]
    containers = [{"name": "main", "image": "example:1", "volumeMounts": mounts}]
    pod = {"restartPolicy": "Never", "volumes": volumes, "containers": containers}
    metadata = {"name": "reader", "annotations": {WAVE: "1"}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}


def held_up_by(status: dict[str, Any], kind: str) -> bool:
    state = status["operationState"]
    is_waiting = state["phase"] == "Running" and "waiting for healthy state of" in state["message"]
    return is_waiting and kind in state["message"]


def read_sync_and_health(status: dict[str, Any]) -> tuple[str, str]:
    return status["sync"]["status"], status["health"]["status"]


@pytest.mark.tier("all")
async def test_pending_claim_blocks_its_wave_unless_profile_is_wait_for_consumer(played: Room) -> None:
    played.repository.push({"app/claim.yaml": claim(), "app/reader.yaml": reader()})
    await played.deliver()
    await played.sync()
    await played.until(lambda status: held_up_by(status, "PersistentVolumeClaim/data"))
    played.clock.leap(3600)
    await played.settled()
    await played.until(lambda status: held_up_by(status, "PersistentVolumeClaim/data"))
    assert await played.get("batch/Job", "reader") is None
    await played.configure({"health.profile.PersistentVolumeClaim": "wait-for-consumer"}, "argosy-cm")
    app = await played.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    await played.until(lambda status: read_sync_and_health(status) == ("Synced", "Healthy"))  # the Job has used the PVC
    bound = await played.get("PersistentVolumeClaim", "data") or {}
    assert bound["status"]["phase"] == "Bound"


async def served(cluster: Cluster, kind: GroupKind) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while kind not in await cluster.kinds():
            await asyncio.sleep(0.02)


async def fares(room: Room, phase: str) -> None:
    """Set the notebook's phase in place of its operator."""
    await room.cluster.patch(NOTEBOOK, {"status": {"phase": phase}}, subresource="status")


def notebook() -> Manifest:
    source = {"path": "train.ipynb", "git": {"url": "https://git.example/ml.git", "ref": "main"}}
    spec = {"notebook": source, "podConfig": {"containerImage": "example:1"}}
    metadata = {"name": NOTEBOOK.name, "annotations": {WAVE: "1"}}
    return {"apiVersion": f"{NOTEBOOK.group}/v1alpha1", "kind": NOTEBOOK.kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
async def test_wave_after_a_notebook_starts_only_after_it_succeeded(room: Room, end: str) -> None:
    await room.cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    await served(room.cluster, NOTEBOOK.group_kind)
    room.repository.push({"app/notebook.yaml": notebook(), "app/model.yaml": MODEL})
    await room.deliver()
    await room.sync()
    for phase in ("Pending", "Running"):
        await room.until(lambda status: held_up_by(status, "NotebookValidationJob/train"))
        await fares(room, phase)
        await room.settled()
        assert await room.get("ConfigMap", "model") is None
    await fares(room, end)
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == end
    assert (await room.get("ConfigMap", "model") is not None) == (end == "Succeeded")


@pytest.mark.tier("all")
async def test_wave_after_a_notebook_does_not_wait_with_gate_ignore(room: Room) -> None:
    """Like an Argo CD without a health check for the kind: creation is enough."""
    await room.cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    await served(room.cluster, NOTEBOOK.group_kind)
    manifest = notebook()
    unchecked = {
        **manifest["metadata"],
        "annotations": {**manifest["metadata"]["annotations"], "argosy.dev/gate": "ignore"},
    }
    room.repository.push({"app/notebook.yaml": {**manifest, "metadata": unchecked}, "app/model.yaml": MODEL})
    await room.deliver()
    await room.sync()
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    assert await room.get("ConfigMap", "model") is not None


# -- mlops.dev/block-wave ----------------------------------------------------------------------------------------------


BLOCKING = {WAVE: "1", "mlops.dev/block-wave": "2"}


def blocking(**annotations: str) -> Manifest:
    manifest = notebook()
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {**BLOCKING, **annotations}}}


def waits_for_notebook(status: dict[str, Any]) -> bool:
    prefix = "waiting for NotebookValidationJob ml/train, which blocks wave 2"
    return bool(status["operationState"]["message"].startswith(prefix))


@pytest.mark.tier("all")
@pytest.mark.parametrize("end", [pytest.param("Succeeded", marks=IN_TEST_ALL), "Failed"])
async def test_block_wave_waits_for_the_notebook_despite_gate_ignore(room: Room, end: str) -> None:
    await room.cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    await served(room.cluster, NOTEBOOK.group_kind)
    lenient = blocking(**{"argosy.dev/gate": "ignore"})
    room.repository.push({"app/notebook.yaml": lenient, "app/model.yaml": MODEL})
    await room.deliver()
    await room.sync()
    await room.until(waits_for_notebook)
    await fares(room, "ValidationRunning")
    await room.settled()
    assert await room.get("ConfigMap", "model") is None
    await fares(room, end)
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == end
    assert (await room.get("ConfigMap", "model") is not None) == (end == "Succeeded")
    if end == "Failed":
        message = "NotebookValidationJob ml/train, which blocks wave 2, failed: no reason was given"
        assert app["status"]["operationState"]["message"] == message


@pytest.mark.tier("all")
@pytest.mark.parametrize("end", [pytest.param("Succeeded", marks=IN_TEST_ALL), "Failed"])
async def test_block_wave_also_blocks_the_wave_of_another_application(room: Room, end: str) -> None:
    await room.cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    await served(room.cluster, NOTEBOOK.group_kind)
    early = {**config_map("early"), "metadata": {"name": "early", "annotations": {WAVE: "1"}}}
    room.repository.push({"app/notebook.yaml": blocking(), "serving/model.yaml": MODEL, "serving/early.yaml": early})
    await room.deliver()
    await room.sync()
    await room.until_over()
    await room.deliver("serving", "serving")
    await room.sync("serving")
    await room.until(waits_for_notebook, "serving")
    assert await room.get("ConfigMap", "early") is not None
    assert await room.get("ConfigMap", "model") is None
    await fares(room, end)
    app = await room.until_over("serving")
    assert app["status"]["operationState"]["phase"] == end
    assert (await room.get("ConfigMap", "model") is not None) == (end == "Succeeded")
