"""Notebook triggers run exactly once, even if the process crashes before or after any API call."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from argosy.features.notebooks.addon import CRD_NAME, STATUS_MUTATORS, list_result_hooks, list_start_hooks
from argosy.features.notebooks.controller import NotebookJobController
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.features.notebooks.image_builds import ImageBuilds
from argosy.features.notebooks.model_checks import ClusterModelChecker
from argosy.features.notebooks.on_success_triggers.execution_context import TriggerExecution
from argosy.kube.controller import SYSTEM_CLOCK, ControllerContext, InformerCache
from argosy.kube.objects import Manifest, dump_yaml
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.crashing_client import Crash, CrashingCluster
from support.notebook_controller import ToldRuns, job

pytestmark = [pytest.mark.tier("test", "prove"), pytest.mark.anyio]
TRAIN = ResourceKey(*NOTEBOOK_JOB, "default", "train")
APP = ResourceKey("argoproj.io", "Application", "default", "serving")
WEB = ResourceKey("apps", "Deployment", "default", "web")
POD, EVENT = GroupKind("", "Pod"), GroupKind("", "Event")
MODEL = "serving.kserve.io/inferenceservice"
TRIGGERS = [
    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "action": "restart"},
    {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "name": "fraud", "action": "restart"},
    {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "name": "serving", "action": "sync"},
]
MOST = 60  # passes


@dataclass
class Stage:
    """A cluster with the other controllers simulated: one that runs Pods, one that runs operations."""

    cluster: EmbeddedCluster
    runs: ToldRuns = field(default_factory=ToldRuns)
    pods: int = 0
    operations: list[Any] = field(default_factory=list)

    async def furnish(self) -> None:
        for name in (CRD_NAME, "applications.argoproj.io", "inferenceservices.serving.kserve.io"):
            await self.cluster.apply(load_definition(name), manager="test")
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        await self.make("apps/v1", "Deployment", "web", {"selector": {"matchLabels": labels}, "template": template})
        served = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/fraud"}
        await self.make("serving.kserve.io/v1beta1", "InferenceService", "fraud", {"predictor": {"model": served}})
        source = {"repoURL": "https://git.example.com/a.git", "path": "a"}
        spec = {"project": "default", "source": source, "destination": {"namespace": "default", "name": "in-cluster"}}
        await self.make("argoproj.io/v1alpha1", "Application", "serving", spec)
        await self.others()
        await self.others()
        await self.cluster.create(job(annotations={"mlops.dev/on-success-trigger": dump_yaml(TRIGGERS)}))

    async def make(self, version: str, kind: str, name: str, spec: Manifest, **labels: str) -> None:
        metadata = {"name": name, "namespace": "default", "labels": labels}
        await self.cluster.create({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec})

    async def others(self) -> None:
        """Keep two ready serving Pods, and complete a requested operation."""
        serving = (await self.cluster.list(POD, namespace="default")).items
        if len(serving) < 2:
            self.pods += 1
            containers = {"containers": [{"name": "kserve-container", "image": "server:1"}]}
            await self.make("v1", "Pod", f"fraud-{self.pods}", containers, **{MODEL: "fraud"})
            ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            key = ResourceKey(*POD, "default", f"fraud-{self.pods}")
            await self.cluster.patch(key, {"status": ready}, subresource="status")
        app = await self.cluster.get(APP) or {}
        if operation := app.get("operation"):
            self.operations.append(operation)
            done = {"phase": "Succeeded", "operation": operation, "startedAt": "2026-01-01T00:00:00Z"}
            await self.cluster.patch(APP, {"operation": None, "status": {"operationState": done}})

    async def process(self, cluster: Any) -> None:
        """Run one process until all work is done or it crashes."""
        metrics = NotebookMetrics()
        follows: dict[str, Any] = {"start_hooks": list_start_hooks(metrics), "result_hooks": list_result_hooks(metrics)}
        controller = NotebookJobController(
            self.runs,
            builds=ImageBuilds(),
            model_checker=ClusterModelChecker(),
            status_mutators=STATUS_MUTATORS,
            **follows,
        )
        for _ in range(MOST):
            await controller.reconcile(TRAIN, ControllerContext(cluster, InformerCache(), SYSTEM_CLOCK))
            await self.others()
            if await self.is_done():
                await controller.reconcile(TRAIN, ControllerContext(cluster, InformerCache(), SYSTEM_CLOCK))
                return
        raise AssertionError(f"it never ended: {await self.cluster.get(TRAIN)}")

    async def is_done(self) -> bool:
        live = await self.cluster.get(TRAIN) or {}
        records = (live.get("status") or {}).get("triggers") or ()
        return bool(records) and all(record["status"] in ("Succeeded", "Failed") for record in records)


async def calls_of_a_whole_life() -> list[str]:
    async with EmbeddedCluster.open() as cluster:
        stage = Stage(cluster)
        await stage.furnish()
        recording_cluster = CrashingCluster(cluster)
        await stage.process(recording_cluster)
        return recording_cluster.calls


async def test_triggers_run_exactly_once_wherever_the_process_crashes(
    size: Callable[[int], int], rng: random.Random
) -> None:
    moments = [(point, after) for point in range(len(await calls_of_a_whole_life())) for after in (False, True)]
    assert len(moments) > 40
    for point, after in rng.sample(moments, size(len(moments))):
        await check_crash(point, after=after)


async def check_crash(point: int, *, after: bool) -> None:
    """Crash a process at that call and let another one continue: every trigger ran once."""
    async with EmbeddedCluster.open() as cluster:
        stage = Stage(cluster)
        await stage.furnish()
        with contextlib.suppress(Crash):
            await stage.process(CrashingCluster(cluster, point, after=after))
        await stage.others()
        await stage.process(cluster)
        await check(stage, f"{'after' if after else 'before'} call {point}")


async def check(stage: Stage, where: str) -> None:
    live, web = await stage.cluster.get(TRAIN) or {}, await stage.cluster.get(WEB) or {}
    events = [event for event in (await stage.cluster.list(EVENT)).items if event["reason"].startswith("Trigger")]
    assert [trigger["status"] for trigger in live["status"]["triggers"]] == ["Succeeded"] * 3, where
    assert web["metadata"]["generation"] == 2, where
    assert stage.pods == 4, f"{where}: {stage.pods} Pods were made"  # two, and their two replacements
    assert len(stage.operations) == 1, f"{where}: {len(stage.operations)} syncs were asked for"
    assert [event["reason"] for event in events] == ["TriggerSuccess"] * 3, where
    assert live["metadata"]["annotations"]["mlops.dev/wave-complete"] == "0", where
    assert '"status":"Succeeded"' in live["metadata"]["annotations"]["mlops.dev/trigger-status"], where


async def test_proof_detects_a_sync_trigger_that_ignores_its_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the marker, the next process cannot know that the previous one requested the sync."""
    point = (await calls_of_a_whole_life()).index("patch Application/serving")
    await check_crash(point, after=True)
    is_marked = TriggerExecution.was_executed_on
    monkeypatch.setattr(
        TriggerExecution, "was_executed_on", lambda self, target: target["kind"] != APP.kind and is_marked(self, target)
    )
    with pytest.raises(AssertionError, match="2 syncs were asked for"):
        await check_crash(point, after=True)
