"""Notebook summary annotations of an Application: which jobs count, what is counted and when it is written."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from argosy.features.notebooks import application_summary
from argosy.features.notebooks.addon import CRD_NAME
from argosy.features.notebooks.application_summary_controller import NotebookSummaryController
from argosy.kube.controller import run
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import LeapingClock
from support.notebook_controller import job

pytestmark = pytest.mark.anyio
STATUS, SUMMARY = "mlops.dev/notebook-status", "mlops.dev/notebook-summary"


def build_job(name: str = "train", phase: str = "", app: str = "", **labels: str) -> Manifest:
    manifest = job(name)
    if app:
        tracking = f"{app}:mlops.mlops.dev/NotebookValidationJob:default/{name}"
        manifest["metadata"]["annotations"] = {"argocd.argoproj.io/tracking-id": tracking}
    manifest["metadata"]["labels"] = {
        f"app.kubernetes.io/{label.replace('_', '-')}": to for label, to in labels.items()
    }
    manifest["metadata"]["generation"] = 1
    if phase:
        manifest["status"] = {"phase": phase, "observedGeneration": 1, "completionTime": "2026-01-01T00:00:00Z"}
    return manifest


def build_application_keys(*keys: tuple[str, str]) -> list[ResourceKey]:
    return [ResourceKey("argoproj.io", "Application", *key) for key in keys]


# -- Application of a job ----------------------------------------------------------------------------------------------


def test_tracking_id_takes_precedence_over_labels_for_the_application_of_a_job() -> None:
    usual = build_application_keys(
        *((namespace, "models") for namespace in ("argocd", "openshift-gitops", "argosy", "default"))
    )
    assert (
        application_summary.list_application_keys(build_job(app="models", part_of="other", instance="third")) == usual
    )
    assert application_summary.list_application_keys(build_job(app="team_models")) == build_application_keys(
        ("team", "models")
    )
    assert application_summary.list_application_keys(build_job(part_of="models")) == usual
    assert application_summary.list_application_keys(build_job(instance="models", part_of="other"))[:5] == [
        *usual,
        *build_application_keys(("argocd", "other")),
    ]
    assert application_summary.list_application_keys(build_job()) == []


def test_tracking_id_copied_from_another_object_is_ignored() -> None:
    copied = build_job(app="models")
    copied["metadata"]["name"] = "copy"
    assert application_summary.list_application_keys(copied) == []


# -- counts ------------------------------------------------------------------------------------------------------------


def test_each_job_is_counted_once_by_its_current_state() -> None:
    old = build_job("old", "Succeeded")
    old["metadata"]["generation"] = 2
    phases = ("", "Initializing", "Building", "ValidationRunning", "Running", "Succeeded", "Failed")
    counts = application_summary.count_jobs([*(build_job(f"job-{phase.lower()}", phase) for phase in phases), old])
    assert counts["total"] == 8
    assert [counts[state] for state in ("succeeded", "failed", "running", "pending")] == [1, 1, 3, 3]
    assert counts["lastFailure"] == {"job": "job-failed", "time": "2026-01-01T00:00:00Z"}


def test_failed_jobs_are_sorted_and_capped_at_20() -> None:
    many = application_summary.count_jobs([build_job(f"job-{number:02}", "Failed") for number in reversed(range(30))])
    assert many["failedJobs"] == [f"job-{number:02}" for number in range(20)]
    assert "failedJobs" not in application_summary.count_jobs([build_job(phase="Succeeded")])


@pytest.mark.parametrize(
    ("good", "total", "said"),
    [
        (15, 16, "15/16 succeeded (93.75% success rate)"),
        (3, 3, "3/3 succeeded (100.0% success rate)"),
        (1, 3, "1/3 succeeded (33.33% success rate)"),
        (1, 2, "1/2 succeeded (50.0% success rate)"),
        (0, 2, "0/2 succeeded (0.0% success rate)"),
        (0, 0, "No notebook validation jobs"),
    ],
)
def test_success_rate_has_only_the_decimals_that_it_needs(good: int, total: int, said: str) -> None:
    assert application_summary.render_summary({"succeeded": good, "total": total}) == said


# -- updates -----------------------------------------------------------------------------------------------------------


class World:
    def __init__(self, cluster: EmbeddedCluster, clock: LeapingClock) -> None:
        self.cluster, self.clock = cluster, clock

    async def app(self, name: str = "models", namespace: str = "argocd") -> None:
        spec = {"project": "default", "source": {"repoURL": "https://example.com/a.git", "path": "a"}}
        whole = {**spec, "destination": {"name": "in-cluster", "namespace": "default"}}
        kind = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
        await self.cluster.create({**kind, "metadata": {"name": name, "namespace": namespace}, "spec": whole})

    async def add(self, manifest: Manifest) -> None:
        """Create a job with its status, and only then the metadata that assigns it to an Application."""
        name, metadata = manifest["metadata"]["name"], manifest["metadata"]
        await self.cluster.create(job(name))
        if status := manifest.get("status"):
            await self.patch(name, {"status": status}, "status")
        marks = {field: metadata[field] for field in ("annotations", "labels") if metadata.get(field)}
        await self.patch(name, {"metadata": marks})

    async def patch(self, name: str, patch: Any, part: str = "") -> None:
        await self.cluster.patch(ResourceKey(*NOTEBOOK_JOB, "default", name), patch, subresource=part)

    async def ends(self, name: str, phase: str) -> None:
        await self.patch(name, {"status": build_job(phase=phase)["status"]}, "status")

    async def said(self, name: str = "models", namespace: str = "argocd") -> dict[str, str]:
        (key,) = build_application_keys((namespace, name))
        live = await self.cluster.get(key) or {"metadata": {}}
        app_annotations: dict[str, str] = live["metadata"].get("annotations") or {}
        return app_annotations

    async def comes(self, said: str, **where: str) -> dict[str, Any]:
        async with asyncio.timeout(HANG_SECONDS):
            while (app_annotations := await self.said(**where)).get(SUMMARY) != said:
                await asyncio.sleep(0.01)
        counts: dict[str, Any] = json.loads(app_annotations[STATUS])
        return counts

    async def stays(self, said: str) -> None:
        """Assert that the summary is unchanged; a summary of a second Application proves that events were processed."""
        await self.app("probe")
        await self.add(build_job("probe", "Succeeded", "probe"))
        await self.comes("1/1 succeeded (100.0% success rate)", name="probe")
        assert (await self.said()).get(SUMMARY) == said


@contextlib.asynccontextmanager
async def summarized(cluster: EmbeddedCluster, *, has_argocd: bool = True) -> AsyncIterator[World]:
    await cluster.apply(load_definition(CRD_NAME), manager="test")
    if has_argocd:
        await cluster.apply(load_definition("applications.argoproj.io"), manager="test")
    for name in ("argocd", "openshift-gitops"):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    clock = LeapingClock()
    work = asyncio.create_task(run([NotebookSummaryController()], cluster, clock=clock))
    try:
        yield World(cluster, clock)
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_summary_counts_only_the_jobs_of_its_application(cluster: EmbeddedCluster) -> None:
    async with summarized(cluster) as world:
        await world.app()
        await world.app("other")
        await world.add(build_job("a", "Succeeded", "models"))
        await world.comes("1/1 succeeded (100.0% success rate)")
        await world.add(build_job("b", "Failed", "other"))
        await world.comes("0/1 succeeded (0.0% success rate)", name="other")
        await world.add(build_job("c", "Failed", "models"))
        world.clock.leap(61)
        counts = await world.comes("1/2 succeeded (50.0% success rate)")
    assert (counts["total"], counts["succeeded"], counts["failed"], counts["failedJobs"]) == (2, 1, 1, ["c"])
    assert counts["lastUpdate"].endswith("Z")


@pytest.mark.parametrize("namespace", ["argocd", "openshift-gitops", "default"])
async def test_application_is_found_in_control_and_job_namespaces(cluster: EmbeddedCluster, namespace: str) -> None:
    async with summarized(cluster) as world:
        await world.app(namespace=namespace)
        await world.add(build_job("a", "Succeeded", part_of="models"))
        await world.comes("1/1 succeeded (100.0% success rate)", namespace=namespace)


async def test_results_in_quick_succession_are_written_together_after_a_delay(cluster: EmbeddedCluster) -> None:
    async with summarized(cluster) as world:
        await world.app()
        for name in ("a", "b", "c"):
            await world.add(build_job(name, app="models"))
        await world.comes("0/1 succeeded (0.0% success rate)")
        for name in ("a", "b", "c"):
            await world.ends(name, "Succeeded")
        await world.stays("0/1 succeeded (0.0% success rate)")
        world.clock.leap(5.1)
        await world.comes("3/3 succeeded (100.0% success rate)")


async def test_progress_without_a_result_is_written_after_a_minute(cluster: EmbeddedCluster) -> None:
    async with summarized(cluster) as world:
        await world.app()
        await world.add(build_job("a", app="models"))
        counts = await world.comes("0/1 succeeded (0.0% success rate)")
        await world.ends("a", "ValidationRunning")
        world.clock.leap(30)
        await world.stays("0/1 succeeded (0.0% success rate)")
        assert json.loads((await world.said())[STATUS]) == counts
        world.clock.leap(31)
        await has(world, lambda summary: summary["running"] == 1)


async def has(world: World, is_so: Callable[[dict[str, Any]], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not is_so(json.loads((await world.said())[STATUS])):
            await asyncio.sleep(0.01)


async def test_unchanged_summary_is_not_rewritten_and_a_removed_one_is_restored(cluster: EmbeddedCluster) -> None:
    (key,) = build_application_keys(("argocd", "models"))
    async with summarized(cluster) as world:
        await world.app()
        await world.add(build_job("a", "Succeeded", "models"))
        await world.comes("1/1 succeeded (100.0% success rate)")
        before = await cluster.get(key)
        await world.patch("a", {"metadata": {"labels": {"any": "thing"}}})
        world.clock.leap(301)
        await world.stays("1/1 succeeded (100.0% success rate)")
        assert await cluster.get(key) == before
        await cluster.patch(key, {"metadata": {"annotations": {STATUS: None, SUMMARY: None}}})
        world.clock.leap(301)
        await world.comes("1/1 succeeded (100.0% success rate)")


async def test_deleted_job_is_removed_from_the_summary(cluster: EmbeddedCluster) -> None:
    async with summarized(cluster) as world:
        await world.app()
        await world.add(build_job("a", "Succeeded", "models"))
        await world.comes("1/1 succeeded (100.0% success rate)")
        await cluster.delete(ResourceKey(*NOTEBOOK_JOB, "default", "a"))
        world.clock.leap(61)
        await world.comes("No notebook validation jobs")


async def test_application_created_after_its_jobs_gets_a_summary(cluster: EmbeddedCluster) -> None:
    async with summarized(cluster, has_argocd=False) as world:
        await world.add(build_job("a", "Succeeded", "models"))
        await cluster.apply(load_definition("applications.argoproj.io"), manager="test")
        await world.app()
        world.clock.leap(301)
        await world.comes("1/1 succeeded (100.0% success rate)")
