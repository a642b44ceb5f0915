"""A cluster with a running notebook controller, and a fake run backend whose results the test defines.

In: an embedded cluster. Out: jobs and their results. Never: runs a notebook; sleeps for a fixed time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from argosy.errors import ArgosyError
from argosy.features.notebooks.addon import ADMISSION_HANDLER, CRD_NAME
from argosy.features.notebooks.controller import NotebookJobController
from argosy.features.notebooks.image_builds import ImageBuilds
from argosy.features.notebooks.model_checks import ClusterModelChecker
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob, read_job
from argosy.features.notebooks.pod_runs.validation_pod_manifest import build_pod
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, RunOutcome
from argosy.kube.controller import AddOn, ControllerContext, run
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import EVENT, NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import LeapingClock

RUN = RunKey("0123456789", 1, 1)
NOTEBOOK = {"git": {"url": "https://example.org/a.git", "ref": "main"}, "path": "train.ipynb"}
GOOD = ({"cell": 0, "type": "code", "status": "Success", "seconds": 0.5, "output": "42"},)
BAD = (*GOOD, {
    "cell": 1, "type": "code", "status": "Failure", "seconds": 0.1, "errorName": "ModuleNotFoundError",
    "errorMessage": "ModuleNotFoundError: No module named 'pandas'",
})  # fmt: skip
PASSED = NotebookRunState("ended", GOOD, 1, "", "c0ffee", RunOutcome(True, ""))
FAILED = NotebookRunState("ended", BAD, 2, "", "c0ffee", RunOutcome(False, "cell 1", "dependency_install_failed"))
RUNNING = NotebookRunState("running", GOOD, 2, "", "c0ffee")
VANISHED = NotebookRunState("lost", GOOD, 2)


@dataclass
class ToldRuns:
    """A fake run backend: the test defines the result of each attempt, or of all attempts."""

    answers: dict[int, NotebookRunState | ArgosyError] = field(default_factory=dict)
    otherwise: NotebookRunState | ArgosyError = PASSED
    started: list[tuple[str, RunKey]] = field(default_factory=list)
    jobs: list[NotebookJob] = field(default_factory=list)
    ended: list[tuple[str, RunKey | None]] = field(default_factory=list)
    alive: set[tuple[str, RunKey]] = field(default_factory=set)

    async def start(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> None:
        answer = self.answers.get(run.attempt, self.otherwise)
        if isinstance(answer, ArgosyError):
            raise answer
        if (job.name, run) not in self.alive:
            self.started.append((job.name, run))
            self.jobs.append(job)
        self.alive.add((job.name, run))

    async def observe(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> NotebookRunState:
        answer = self.answers.get(run.attempt, self.otherwise)
        if (job.name, run) not in self.alive or isinstance(answer, ArgosyError):
            return NotebookRunState("absent")
        return answer

    async def stop(self, job: ResourceKey, run: RunKey | None, context: ControllerContext) -> None:
        ended = {alive_run for alive_run in self.alive if alive_run[0] == job.name and run in (None, alive_run[1])}
        if ended:
            self.ended.append((job.name, run))
        self.alive -= ended


class World:
    def __init__(self, cluster: EmbeddedCluster, runs: ToldRuns, controller: NotebookJobController) -> None:
        self.cluster, self.runs, self.controller = cluster, runs, controller

    async def apply(self, manifest: Manifest) -> Manifest:
        return await self.cluster.create(manifest)

    async def status(self, name: str = "train") -> Mapping[str, Any]:
        live = await self.cluster.get(ResourceKey(*NOTEBOOK_JOB, "default", name)) or {}
        status: Mapping[str, Any] = live.get("status") or {}
        return status

    async def becomes(self, is_so: Callable[[Mapping[str, Any]], Any], name: str = "train") -> Mapping[str, Any]:
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                status = await self.status(name)
                with contextlib.suppress(KeyError, IndexError):
                    if is_so(status):
                        return status
                await asyncio.sleep(0.01)

    async def ends(self, name: str = "train") -> Mapping[str, Any]:
        return await self.becomes(lambda status: status["phase"] in ("Succeeded", "Failed"), name)

    async def patch(self, patch: Any, name: str = "train") -> None:
        await self.cluster.patch(ResourceKey(*NOTEBOOK_JOB, "default", name), patch)

    async def told(self, *reasons: str) -> list[Manifest]:
        """Wait until Events with all of these reasons exist, and return all Events."""
        async with asyncio.timeout(HANG_SECONDS):
            while True:
                events = list((await self.cluster.list(EVENT)).items)
                if set(reasons) <= {event["reason"] for event in events}:
                    return events
                await asyncio.sleep(0.01)

    async def delete(self, name: str = "train") -> None:
        await self.cluster.delete(ResourceKey(*NOTEBOOK_JOB, "default", name))


@contextlib.asynccontextmanager
async def world(cluster: EmbeddedCluster, runs: ToldRuns | None = None, **options: Any) -> AsyncIterator[World]:
    """Run the controller as an add-on, like in the sandbox."""
    fixed_runs = runs or ToldRuns()
    controller = NotebookJobController(
        fixed_runs, **{"builds": ImageBuilds(), "model_checker": ClusterModelChecker(), **options}
    )
    addon = AddOn(
        "notebooks",
        controllers=[controller],
        definitions=[load_definition(CRD_NAME)],
        admission_handlers=[ADMISSION_HANDLER],
    )
    async with run_addons([addon], cluster, on_failure=lambda: None):
        yield World(cluster, fixed_runs, controller)


@contextlib.asynccontextmanager
async def leaping(
    cluster: EmbeddedCluster, runs: ToldRuns | None = None, **options: Any
) -> AsyncIterator[tuple[World, LeapingClock]]:
    """Run the controller with a clock that the test moves."""
    fixed_runs, clock = runs or ToldRuns(), LeapingClock()
    controller = NotebookJobController(
        fixed_runs, **{"builds": ImageBuilds(), "model_checker": ClusterModelChecker(), **options}
    )
    await cluster.apply(load_definition(CRD_NAME), manager="test")
    work = asyncio.create_task(run([controller], cluster, clock=clock))
    try:
        yield World(cluster, fixed_runs, controller), clock
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


def job(name: str = "train", annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    config = {"containerImage": "image:1", **spec.pop("pod", {})}
    metadata: Manifest = {"name": name, "namespace": "default", **({"annotations": annotations} if annotations else {})}
    whole = {"notebook": NOTEBOOK, "podConfig": config, **spec}
    return {
        "apiVersion": "mlops.mlops.dev/v1alpha1",
        "kind": NOTEBOOK_JOB.kind,
        "metadata": metadata,
        "spec": whole,
    }


def build_run_pod(**spec: Any) -> Manifest:
    """Build the Pod of the first run of a job."""
    manifest = job(**spec)
    manifest["metadata"] |= {"uid": RUN.uid, "generation": 1}
    return build_pod(read_job(manifest), RUN)


def condition(status: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next(
        (candidate for candidate in status.get("conditions") or () if candidate["type"] == name), {"status": ""}
    )
