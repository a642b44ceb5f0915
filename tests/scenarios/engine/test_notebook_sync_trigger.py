"""A notebook that succeeds triggers a sync of another Application, which the running engine executes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.features.notebooks.addon import STATUS_MUTATORS, list_result_hooks
from argosy.features.notebooks.application_summary_controller import NotebookSummaryController
from argosy.features.notebooks.controller import NotebookJobController
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.features.notebooks.image_builds import ImageBuilds
from argosy.features.notebooks.model_checks import ClusterModelChecker
from argosy.kube.controller import run
from argosy.kube.objects import dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from support.deadlines import HANG_SECONDS
from support.engine import Room, config_map
from support.notebook_controller import ToldRuns, job

pytestmark = pytest.mark.anyio
TRIGGER = {
    "apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "name": "serving", "action": "sync",
    "waitFor": "Ready", "timeout": "50s",
}  # fmt: skip


async def test_succeeded_notebook_triggers_a_sync_of_another_application(room: Room) -> None:
    await room.cluster.create(load_definition("notebookvalidationjobs.mlops.mlops.dev"))
    async with asyncio.timeout(HANG_SECONDS):
        while NOTEBOOK_JOB not in await room.cluster.kinds():
            await asyncio.sleep(0.02)
    room.repository.push({"serving/model.yaml": config_map("model"), "app/other.yaml": config_map("other")})
    await room.deliver("serving", "serving")
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync", "serving")
    await allow(room)
    metrics = NotebookMetrics()
    follows: dict[str, Any] = {"result_hooks": list_result_hooks(metrics), "status_mutators": STATUS_MUTATORS}
    notebooks = NotebookJobController(
        ToldRuns(), builds=ImageBuilds(), model_checker=ClusterModelChecker(), metrics=metrics, **follows
    )
    work = asyncio.create_task(run([notebooks, NotebookSummaryController()], room.cluster, clock=room.clock))
    try:
        notebook_job = job(annotations={"mlops.dev/on-success-trigger": dump_yaml([TRIGGER])})
        notebook_job["metadata"] |= {"namespace": "ml", "labels": {"app.kubernetes.io/part-of": "serving"}}
        await room.cluster.create(notebook_job)
        record = await ended(room)
        await room.until_synced(name="serving")
        room.clock.leap(6)  # results are summarized in batches
        app = await summarized(room)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    assert (record["status"], record["message"]) == ("Succeeded", "synced and Healthy")
    assert await room.get("ConfigMap", "model") is not None
    state = app["status"]["operationState"]
    assert state["operation"]["initiatedBy"] == {"username": "system:serviceaccount:ml:default"}
    assert {"name": "Reason", "value": "notebook ml/train succeeded"} in state["operation"]["info"]
    assert app["status"]["sync"]["status"] == "Synced"


async def allow(room: Room) -> None:
    """Grant the right that the job's ServiceAccount needs where RBAC is enforced."""
    api, metadata = "rbac.authorization.k8s.io", {"name": "sync", "namespace": "argocd"}
    rule = {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["patch"]}
    await room.cluster.create({"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]})
    account = {"kind": "ServiceAccount", "name": "default", "namespace": "ml"}
    role = {"apiGroup": api, "kind": "Role", "name": "sync"}
    binding = {"apiVersion": f"{api}/v1", "kind": "RoleBinding", "metadata": metadata}
    await room.cluster.create({**binding, "subjects": [account], "roleRef": role})


async def ended(room: Room) -> dict[str, Any]:
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            live = await room.cluster.get(ResourceKey(*NOTEBOOK_JOB, "ml", "train")) or {}
            for record in (live.get("status") or {}).get("triggers") or ():
                if record["status"] in ("Succeeded", "Failed"):
                    trigger_record: dict[str, Any] = record
                    return trigger_record
            await asyncio.sleep(0.02)


async def summarized(room: Room) -> dict[str, Any]:
    """Wait for our annotation on the Application: its engine writes the status, and neither reverts the other."""
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            app = await room.app("serving")
            summary = (app["metadata"].get("annotations") or {}).get("mlops.dev/notebook-summary")
            if summary == "1/1 succeeded (100.0% success rate)":
                return app
            await asyncio.sleep(0.02)
