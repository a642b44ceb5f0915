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
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.statuses import SUCCEEDED
from argosy.gitops.application.hooks import wave
from argosy.kube.controller import Context, Requeue
from argosy.kube.objects import Manifest

MANAGER: Final = "notebooks"
WRITTEN: Final = (
    WAVE_COMPLETE, WAVE_FAILED, COMPLETION_TIME, FAILURE_TIME, OBSERVED_GENERATION, OBSERVED_REVISION,
)  # fmt: skip


async def clear(job: Job, live: Manifest, context: Context) -> Requeue | None:
    """Remove the annotations before a run starts, so that the last result is not mistaken for its result."""
    await _write(job, dict.fromkeys(WRITTEN), context)
    return None


async def mark(job: Job, live: Manifest, context: Context) -> Requeue | None:
    """argo: a manifest without a wave is in wave 0."""
    status = live.get("status") or {}
    good = status.get("phase") == SUCCEEDED
    which, time = str(wave(live)), str(status.get("completionTime") or "")
    told = {
        WAVE_COMPLETE: which if good else None,
        WAVE_FAILED: None if good else which,
        COMPLETION_TIME: time if good else None,
        FAILURE_TIME: None if good else time,
        OBSERVED_GENERATION: str(job.generation),
        OBSERVED_REVISION: str(status.get("gitCommit") or "") or None,
    }
    await _write(job, told, context)
    return None


async def _write(job: Job, wanted: dict[str, str | None], context: Context) -> None:
    """Merge-patch only the differences, so that other writers do not conflict."""
    changed = {name: value for name, value in wanted.items() if job.annotations.get(name) != value}
    if changed:
        await context.cluster.patch(job.key, {"metadata": {"annotations": changed}}, manager=MANAGER)
