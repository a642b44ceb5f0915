"""Finds notebooks that block a wave by annotation. Pure.

In: a wave of an Application, the live NotebookValidationJobs. Out: why the wave must wait, or why it will never start.
Never: uses health: a job blocks by its own status, whatever else the sync waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from argosy import annotations as names
from argosy.gitops.application import Application
from argosy.gitops.application.sync_annotations import get_annotation
from argosy.gitops.application.sync_annotations import read_wave as wave_of
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

NOTEBOOK_CHECK_SECONDS: Final = 2.0  # seconds between checks: a job of another Application wakes only that one
MAX_REASON_LENGTH: Final = 200


@dataclass(frozen=True, slots=True)
class WaveHold:
    message: str
    has_failed: bool = False  # the wave will not start without a fix


FindWaveHold = Callable[[int], WaveHold | None]


def find_wave_hold(
    wave: int, jobs: Iterable[Manifest], app: Application, own_jobs: Collection[ResourceKey]
) -> WaveHold | None:
    """Return what blocks the wave; failures come first. `own_jobs` are the jobs that this Application delivers."""
    holds = [
        job_hold
        for job in sorted(jobs, key=key_of)
        if _is_blocking(job, wave, app, own_jobs) and (job_hold := _build_hold(job))
    ]
    return next((candidate for candidate in holds if candidate.has_failed), holds[0] if holds else None)


def _is_blocking(job: Manifest, wave: int, app: Application, own_jobs: Collection[ResourceKey]) -> bool:
    blocked = read_blocked_wave(job)
    if blocked is None or wave < blocked or job["metadata"].get("deletionTimestamp"):
        return False
    if key_of(job) in own_jobs:
        return wave_of(job) < blocked  # otherwise it would wait for itself
    named_apps = (get_annotation(job, names.BLOCK_APPLICATION) or "").replace(",", " ").split()
    if named_apps:
        return app.name in named_apps or f"{app.key.namespace}/{app.name}" in named_apps
    return bool(job["metadata"].get("namespace") == app.destination.namespace)


def read_blocked_wave(job: Manifest) -> int | None:
    """Return the blocked wave; None if there is none or it is not a number."""
    text = (get_annotation(job, names.BLOCK_WAVE) or "").strip()
    try:
        return int(text) if text else None
    except ValueError:
        return None


def _build_hold(job: Manifest) -> WaveHold | None:
    """Return the block; None if the job succeeded with its current spec and the last requested run."""
    status: dict[str, Any] = job.get("status") or {}
    metadata = job["metadata"]
    job_name = f"NotebookValidationJob {metadata.get('namespace', '')}/{metadata['name']}"
    observed = status.get("observedGeneration")
    is_stale = observed is not None and observed != metadata.get("generation")
    requested_run = get_annotation(job, names.RE_RUN)
    is_run_pending = observed is not None and bool(requested_run) and requested_run != status.get("observedReRun")
    phase = "" if is_stale or is_run_pending else status.get("phase")
    if phase == "Succeeded":
        return None
    if phase == "Failed":
        reason = (str(status.get("message") or "").splitlines() or ["no reason was given"])[0][:MAX_REASON_LENGTH]
        return WaveHold(f"{job_name}, which blocks wave {read_blocked_wave(job)}, failed: {reason}", has_failed=True)
    return WaveHold(f"waiting for {job_name}, which blocks wave {read_blocked_wave(job)} ({phase or 'not started'})")
