"""Writes the wave annotations of a job, for hooks, scripts and other Applications that wait for it.

In: a job that starts a run, or whose result is stored. Out: annotations on the job. Never: keeps annotations of an
earlier run during another run; writes anything but annotations.
"""

from __future__ import annotations

from typing import Final

from argosy.annotations import (
    COMPLETION_TIME,
    FAILURE_TIME,
    OBSERVED_GENERATION,
    OBSERVED_REVISION,
    WAVE_COMPLETE,
    WAVE_FAILED,
)  # fmt: skip
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import SUCCEEDED
from argosy.gitops.application.sync_annotations import read_wave
from argosy.kube.controller import ControllerContext, Requeue
from argosy.kube.objects import Manifest

MANAGER: Final = "notebooks"
WAVE_ANNOTATIONS: Final = (
    WAVE_COMPLETE, WAVE_FAILED, COMPLETION_TIME, FAILURE_TIME, OBSERVED_GENERATION, OBSERVED_REVISION,
)  # fmt: skip


async def clear_annotations(job: NotebookJob, live: Manifest, context: ControllerContext) -> Requeue | None:
    """Remove the annotations before a run starts, so that the last result is not mistaken for its result."""
    await _patch_annotations(job, dict.fromkeys(WAVE_ANNOTATIONS), context)
    return None


async def write_annotations(job: NotebookJob, live: Manifest, context: ControllerContext) -> Requeue | None:
    """argo: a manifest without a wave is in wave 0."""
    status = live.get("status") or {}
    has_succeeded = status.get("phase") == SUCCEEDED
    wave_number, time = str(read_wave(live)), str(status.get("completionTime") or "")
    annotations = {
        WAVE_COMPLETE: wave_number if has_succeeded else None,
        WAVE_FAILED: None if has_succeeded else wave_number,
        COMPLETION_TIME: time if has_succeeded else None,
        FAILURE_TIME: None if has_succeeded else time,
        OBSERVED_GENERATION: str(job.generation),
        OBSERVED_REVISION: str(status.get("gitCommit") or "") or None,
    }
    await _patch_annotations(job, annotations, context)
    return None


async def _patch_annotations(job: NotebookJob, annotations: dict[str, str | None], context: ControllerContext) -> None:
    """Merge-patch only the differences, so that other writers do not conflict."""
    changes = {name: value for name, value in annotations.items() if job.annotations.get(name) != value}
    if changes:
        await context.cluster.patch(job.key, {"metadata": {"annotations": changes}}, manager=MANAGER)
