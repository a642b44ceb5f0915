"""Sync wave result annotations of a job: written after a run, cleared when another run starts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.features.notebooks import wave_result_annotations
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.notebook_controller import FAILED, PASSED, RUNNING, ToldRuns, World, job, world

pytestmark = pytest.mark.anyio
TRAIN = ResourceKey(*NOTEBOOK_JOB, "default", "train")
WAVE = "argocd.argoproj.io/sync-wave"
OPTIONS: dict[str, Any] = {
    "start_hooks": [wave_result_annotations.clear_annotations],
    "result_hooks": [wave_result_annotations.write_annotations],
}


async def read_wave_annotations(cluster: EmbeddedCluster) -> dict[str, str]:
    live = await cluster.get(TRAIN) or {}
    job_annotations = live["metadata"].get("annotations") or {}
    return {
        name.removeprefix("mlops.dev/"): value
        for name, value in job_annotations.items()
        if name in wave_result_annotations.WAVE_ANNOTATIONS
    }


async def comes(cluster: EmbeddedCluster, *names: str) -> dict[str, str]:
    async with asyncio.timeout(HANG_SECONDS):
        while not set(names) <= set(wave_annotations := await read_wave_annotations(cluster)):
            await asyncio.sleep(0.01)
    return wave_annotations


@pytest.mark.parametrize(("annotations", "wave"), [({WAVE: "3"}, "3"), ({WAVE: "-2"}, "-2"), (None, "0")])
async def test_success_annotations_name_the_wave_with_default_0(
    cluster: EmbeddedCluster, annotations: dict[str, str] | None, wave: str
) -> None:
    async with world(cluster, **OPTIONS) as at:
        await at.apply(job(annotations=annotations))
        status = await at.ends()
        wave_annotations = await comes(cluster, "wave-complete")
    assert wave_annotations == {
        "wave-complete": wave, "completion-time": status["completionTime"], "observed-generation": "1",
        "observed-revision": "c0ffee",
    }  # fmt: skip


async def test_failure_sets_only_the_wave_failed_annotations(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=FAILED), **OPTIONS) as at:
        await at.apply(job(annotations={WAVE: "3"}, pod={"buildConfig": {"enabled": True}}))
        status = await at.ends()
        wave_annotations = await comes(cluster, "wave-failed")
    assert wave_annotations["wave-failed"] == "3"
    assert wave_annotations["failure-time"] == status["completionTime"]
    assert not {"wave-complete", "completion-time"} & set(wave_annotations)


async def new_run(at: World) -> None:
    at.runs.otherwise = RUNNING
    await at.patch({"spec": {"timeout": "20m"}})
    await at.becomes(lambda status: status["observedGeneration"] == 2 and status["results"])


async def test_annotations_of_the_previous_run_are_cleared_when_a_new_run_starts(cluster: EmbeddedCluster) -> None:
    async with world(cluster, **OPTIONS) as at:
        await at.apply(job(annotations={WAVE: "3"}))
        await comes(cluster, "wave-complete")
        await new_run(at)
        between = await read_wave_annotations(cluster)
        at.runs.otherwise = FAILED
        after = await comes(cluster, "wave-failed")
    assert between == {}
    assert (after["wave-failed"], after["observed-generation"]) == ("3", "2")
    assert "wave-complete" not in after


async def test_removed_wave_annotation_is_restored(cluster: EmbeddedCluster) -> None:
    async with world(cluster, ToldRuns(otherwise=PASSED), **OPTIONS) as at:
        await at.apply(job(annotations={WAVE: "3"}))
        await comes(cluster, "wave-complete")
        await at.patch({"metadata": {"annotations": {"mlops.dev/wave-complete": None}}})
        assert (await comes(cluster, "wave-complete"))["wave-complete"] == "3"
