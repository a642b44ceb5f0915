"""Assembles the notebooks add-on.

In: the name of a variant. Out: an AddOn. Never: decides anything about a job.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.features.notebooks import wave_annotations
from argosy.features.notebooks.controller import Follower, Notebooks, Pledge
from argosy.features.notebooks.image_builds import ImageBuilds
from argosy.features.notebooks.job import KIND, Job
from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.local_runs.pods import LocalPods
from argosy.features.notebooks.metrics import Metrics
from argosy.features.notebooks.model_checks import ModelsAsked
from argosy.features.notebooks.pod_runs import PodRuns
from argosy.features.notebooks.problems import warnings
from argosy.features.notebooks.run_backend import RunKey, Runs, Standing
from argosy.features.notebooks.summary_controller import Summaries
from argosy.features.notebooks.triggers import Triggers, give_up, pledged
from argosy.kube.client import Admitter
from argosy.kube.controller import AddOn, Context
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.schema.bundled_crds import definition

NAME: Final = "notebooks"
PODS: Final = "pods"
DEFINITION: Final = "notebookvalidationjobs.mlops.mlops.dev"
PLEDGES: Final[tuple[Pledge, ...]] = (pledged,)  # stored together with a result


def make(variant: str) -> AddOn:
    if variant not in ("", PODS):
        choice = f"{NAME}, {NAME}={PODS}"
        raise UserError(f"unknown variant {variant}; choose one of: {choice}", where=f"--addons {NAME}={variant}")
    local = LocalRuns()
    shown = None if variant == PODS else LocalPods(local)
    notebooks = controller(PodRuns() if variant == PODS else Chosen(local, PodRuns()))
    return AddOn(
        f"{NAME}={variant}" if variant else NAME,
        about="runs and validates the notebooks of NotebookValidationJobs",
        controllers=[notebooks, Summaries(), *([shown] if shown else ())],
        definitions=[definition(DEFINITION)],
        pod_logs=shown,
        admitters=[ADMITTER],
        beside=None if variant == PODS else local.beside,
        metrics=notebooks.metrics.text,
    )


def controller(runs: Runs) -> Notebooks:
    metrics = Metrics()
    return Notebooks(
        runs,
        builds=ImageBuilds(),
        models=ModelsAsked(),
        metrics=metrics,
        at_start=at_start(metrics),
        after_result=after_result(metrics),
        pledges=PLEDGES,
    )


def at_start(metrics: Metrics) -> tuple[Follower, ...]:
    """Hooks that run before a run starts, in this order."""
    return (wave_annotations.clear, give_up)


def after_result(metrics: Metrics) -> tuple[Follower, ...]:
    """Hooks that run after a result is stored, in this order."""
    return (wave_annotations.mark, Triggers(metrics))


def _as_it_is(manifest: Manifest, before: Manifest | None) -> Manifest:
    """Do not mutate user fields: Git and the cluster would always differ."""
    return manifest


ADMITTER: Final = Admitter(KIND, DEFINITION, NAME, _as_it_is, warnings)


class Chosen:
    """Runs notebooks as local processes if this machine can, otherwise with the other backend."""

    def __init__(self, local: LocalRuns, other: Runs) -> None:
        self._local, self._other = local, other

    @property
    def _runs(self) -> Runs:
        return self._local if self._local.is_open else self._other

    async def start(self, job: Job, run: RunKey, context: Context) -> None:
        await self._runs.start(job, run, context)

    async def look(self, job: Job, run: RunKey, context: Context) -> Standing:
        return await self._runs.look(job, run, context)

    async def end(self, job: ResourceKey, run: RunKey | None, context: Context) -> None:
        await self._runs.end(job, run, context)
