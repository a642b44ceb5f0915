"""Assembles the notebooks add-on.

In: the name of a variant. Out: an AddOn. Never: decides anything about a job.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.features.notebooks import wave_result_annotations
from argosy.features.notebooks.application_summary_controller import NotebookSummaryController
from argosy.features.notebooks.controller import JobHook, NotebookJobController, StatusMutator
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.features.notebooks.image_builds import ImageBuilds
from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.local_runs.placeholder_pods import PlaceholderPodController
from argosy.features.notebooks.model_checks import ClusterModelChecker
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.on_success_triggers import TriggerHook, add_trigger_records, delete_trial_pods
from argosy.features.notebooks.pod_runs import PodRuns
from argosy.features.notebooks.run_backend import NotebookRunState, RunBackend, RunKey
from argosy.features.notebooks.spec_validation import list_warnings
from argosy.kube.client import AdmissionHandler
from argosy.kube.controller import AddOn, ControllerContext
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

NAME: Final = "notebooks"
PODS_VARIANT: Final = "pods"
CRD_NAME: Final = "notebookvalidationjobs.mlops.mlops.dev"
STATUS_MUTATORS: Final[tuple[StatusMutator, ...]] = (add_trigger_records,)  # stored together with a result


def make(variant: str) -> AddOn:
    if variant not in ("", PODS_VARIANT):
        choices = f"{NAME}, {NAME}={PODS_VARIANT}"
        raise UserError(f"unknown variant {variant}; choose one of: {choices}", where=f"--addons {NAME}={variant}")
    local = LocalRuns()
    placeholder_pods = None if variant == PODS_VARIANT else PlaceholderPodController(local)
    notebooks = build_controller(PodRuns() if variant == PODS_VARIANT else BackendSelector(local, PodRuns()))
    return AddOn(
        f"{NAME}={variant}" if variant else NAME,
        description="runs and validates the notebooks of NotebookValidationJobs",
        controllers=[notebooks, NotebookSummaryController(), *([placeholder_pods] if placeholder_pods else ())],
        definitions=[load_definition(CRD_NAME)],
        pod_log_reader=placeholder_pods,
        admission_handlers=[ADMISSION_HANDLER],
        background=None if variant == PODS_VARIANT else local.open_backend,
        metrics=notebooks.metrics.render,
    )


def build_controller(backend: RunBackend) -> NotebookJobController:
    metrics = NotebookMetrics()
    return NotebookJobController(
        backend,
        builds=ImageBuilds(),
        model_checker=ClusterModelChecker(),
        metrics=metrics,
        start_hooks=list_start_hooks(metrics),
        result_hooks=list_result_hooks(metrics),
        status_mutators=STATUS_MUTATORS,
    )


def list_start_hooks(metrics: NotebookMetrics) -> tuple[JobHook, ...]:
    """Hooks that run before a run starts, in this order."""
    return (wave_result_annotations.clear_annotations, delete_trial_pods)


def list_result_hooks(metrics: NotebookMetrics) -> tuple[JobHook, ...]:
    """Hooks that run after a result is stored, in this order."""
    return (wave_result_annotations.write_annotations, TriggerHook(metrics))


def _keep_unchanged(manifest: Manifest, previous: Manifest | None) -> Manifest:
    """Do not mutate user fields: Git and the cluster would always differ."""
    return manifest


ADMISSION_HANDLER: Final = AdmissionHandler(NOTEBOOK_JOB, CRD_NAME, NAME, _keep_unchanged, list_warnings)


class BackendSelector:
    """Runs notebooks as local processes if this machine can, otherwise with the other backend."""

    def __init__(self, local: LocalRuns, fallback: RunBackend) -> None:
        self._local, self._fallback = local, fallback

    @property
    def _backend(self) -> RunBackend:
        return self._local if self._local.is_open else self._fallback

    async def start(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> None:
        await self._backend.start(job, run, context)

    async def observe(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> NotebookRunState:
        return await self._backend.observe(job, run, context)

    async def stop(self, job: ResourceKey, run: RunKey | None, context: ControllerContext) -> None:
        await self._backend.stop(job, run, context)
