"""A status whose observedGeneration is stale does not complete a task or start the next wave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from argosy.gitops.application import OperationPhase
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.health.lua import run_health_script
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.gitops.sync.observed_generation_check import correct_stale_health
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.bundled_crds import load_definition as bundled_definition
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.sync_operations import Stage, config, ends, manifest, summarize_results

# A health check as printed in guides: it uses the phase and never reads observedGeneration.
CHECK = """
hs = {status = "Progressing", message = "Initializing notebook validation"}
if obj.status == nil or obj.status.phase == nil then return hs end
if obj.status.phase == "Succeeded" then hs.status = "Healthy"; hs.message = "Notebook validation succeeded" end
if obj.status.phase == "Failed" then hs.status = "Degraded"; hs.message = "Notebook validation failed" end
return hs
"""
WAITING = "waiting for healthy state of mlops.mlops.dev/NotebookValidationJob/train"
NO_STALE_KINDS = SyncSettings(wave_delay_seconds=0, observed_kinds=())


def training(ref: str) -> Manifest:
    notebook = {"git": {"url": "https://git.example.com/models.git", "ref": ref}, "path": "train.ipynb"}
    spec = {"notebook": notebook, "podConfig": {"containerImage": "runtime:1"}}
    return manifest("NotebookValidationJob", "train", api="mlops.mlops.dev/v1alpha1", wave=1, spec=spec)


async def judge(manifests: Sequence[Manifest]) -> list[Assessment | None]:
    return [run_health_script(CHECK, live) if live["kind"] == NOTEBOOK_JOB.kind else None for live in manifests]


async def nothing_happens(_: Cluster) -> None:
    pass


async def write_status(cluster: Cluster, phase: str, observed: int | None) -> None:
    status: dict[str, Any] = {"phase": phase}
    if observed is not None:
        status["observedGeneration"] = observed
    await cluster.patch(key_of(training("")), {"status": status}, subresource="status")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create(bundled_definition("notebookvalidationjobs.mlops.mlops.dev"))
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        yield opened


async def second_sync(cluster: Cluster, phase: str, settings: SyncSettings | None = None) -> Stage:
    """Start a sync of a new spec after the first sync, with the job's status in `phase`."""
    more = {"settings": settings} if settings else {}
    stage = Stage(cluster, [training("v1"), config("serving", wave=2)], judge=judge, world=nothing_happens, **more)
    await stage.step()
    await write_status(cluster, "Succeeded", 1)
    assert (await stage.finish()).phase is OperationPhase.SUCCEEDED
    await write_status(cluster, phase, 1)
    return stage.again(training("v2"), config("serving", "2", wave=2))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_sync_waits_while_the_notebook_status_is_of_the_old_generation(cluster: Cluster, phase: str) -> None:
    stage = await second_sync(cluster, phase)
    await stage.until(WAITING)
    assert (await stage.step()).state.message == WAITING
    served = await stage.get(key_of(config("serving")))
    assert served and served["data"] == {"value": "1"}, "the wave after the notebook must not begin"
    await write_status(cluster, "Succeeded", 2)
    assert ends(await stage.finish())[0] is OperationPhase.SUCCEEDED
    served = await stage.get(key_of(config("serving")))
    assert served and served["data"] == {"value": "2"}


async def test_failure_of_the_current_generation_fails_the_sync(cluster: Cluster) -> None:
    stage = await second_sync(cluster, "Succeeded")
    await stage.until(WAITING)
    await write_status(cluster, "Failed", 2)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED
    assert summarize_results(state)["NotebookValidationJob/train"][1:] == ("Failed", "Notebook validation failed")


async def test_without_observed_kinds_the_health_script_alone_decides(cluster: Cluster) -> None:
    stage = await second_sync(cluster, "Succeeded", NO_STALE_KINDS)
    assert (await stage.finish()).phase is OperationPhase.SUCCEEDED


def widget(observed: object, generation: object = 2, group: str = "example.com") -> Manifest:
    metadata = {"name": "w", "generation": generation}
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata,
            "status": {"observedGeneration": observed}}  # fmt: skip


def health(status: HealthStatus | None, fault: str = "") -> Assessment:
    return Assessment(status, "said by the script", fault=fault)


async def assess_live(live: Manifest, said: Assessment | None, *kinds: str) -> Assessment | None:
    async def assess_all(manifests: Sequence[Manifest]) -> list[Assessment | None]:
        return [said for _ in manifests]

    (assessment,) = await correct_stale_health(assess_all, kinds)([live])
    return assessment


async def test_only_kinds_that_match_a_pattern_wait_for_observed_generation() -> None:
    healthy = health(HealthStatus.HEALTHY)
    assert await assess_live(widget(1), healthy) == healthy
    assert await assess_live(widget(1), healthy, "mlops.mlops.dev/NotebookValidationJob") == healthy
    for pattern in ("example.com/Widget", "*.com/*", "example.com/{Widget,Gadget}"):
        assessment = await assess_live(widget(1), healthy, "other.io/Kind", pattern)
        assert assessment and assessment.health is HealthStatus.PROGRESSING
        assert assessment.message == "waiting for generation 2: the status is of generation 1"


@pytest.mark.parametrize("observed", [2, 3, None, "1", True, 1.5])
async def test_status_is_stale_only_if_observed_generation_is_a_smaller_integer(observed: object) -> None:
    healthy = health(HealthStatus.HEALTHY)
    assert await assess_live(widget(observed), healthy, "*/*") == healthy


async def test_object_without_metadata_generation_is_never_stale() -> None:
    healthy = health(HealthStatus.HEALTHY)
    assert await assess_live(widget(1, None), healthy, "*/*") == healthy
    assert await assess_live({"kind": "Widget", "metadata": None, "status": []}, healthy, "*/*") == healthy


@pytest.mark.parametrize("said", [None, health(HealthStatus.PROGRESSING), health(HealthStatus.UNKNOWN, fault="boom")])
async def test_health_that_does_not_complete_a_task_is_kept(said: Assessment | None) -> None:
    assert await assess_live(widget(1), said, "*/*") == said
