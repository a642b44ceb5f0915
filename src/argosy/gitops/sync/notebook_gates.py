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
from argosy.gitops.application.hooks import annotation_text
from argosy.gitops.application.hooks import wave as wave_of
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

JOB: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
LOOK: Final = 2.0  # seconds between checks: a job of another Application wakes only that one
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Hold:
    message: str
    has_failed: bool = False  # the wave will not start without a fix


Holds = Callable[[int], Hold | None]


def hold(wave: int, jobs: Iterable[Manifest], app: Application, own: Collection[ResourceKey]) -> Hold | None:
    """Return what blocks the wave; failures come first. `own_jobs` are the jobs that this Application delivers."""
    found = [told for job in sorted(jobs, key=key_of) if _blocks(job, wave, app, own) and (told := _told(job))]
    return next((each for each in found if each.has_failed), found[0] if found else None)


def _blocks(job: Manifest, wave: int, app: Application, own: Collection[ResourceKey]) -> bool:
    blocked = block_wave(job)
    if blocked is None or wave < blocked or job["metadata"].get("deletionTimestamp"):
        return False
    if key_of(job) in own:
        return wave_of(job) < blocked  # otherwise it would wait for itself
    named = (annotation_text(job, names.BLOCK_APPLICATION) or "").replace(",", " ").split()
    if named:
        return app.name in named or f"{app.key.namespace}/{app.name}" in named
    return bool(job["metadata"].get("namespace") == app.destination.namespace)


def block_wave(job: Manifest) -> int | None:
    """Return the blocked wave; None if there is none or it is not a number."""
    text = (annotation_text(job, names.BLOCK_WAVE) or "").strip()
    try:
        return int(text) if text else None
    except ValueError:
        return None


def _told(job: Manifest) -> Hold | None:
    """Return the block; None if the job succeeded with its current spec and the last requested run."""
    status: dict[str, Any] = job.get("status") or {}
    metadata = job["metadata"]
    which = f"NotebookValidationJob {metadata.get('namespace', '')}/{metadata['name']}"
    observed = status.get("observedGeneration")
    is_old = observed is not None and observed != metadata.get("generation")
    asked = annotation_text(job, names.RE_RUN)
    is_asked = observed is not None and bool(asked) and asked != status.get("observedReRun")
    phase = "" if is_old or is_asked else status.get("phase")
    if phase == "Succeeded":
        return None
    if phase == "Failed":
        said = (str(status.get("message") or "").splitlines() or ["no reason was given"])[0][:LONGEST]
        return Hold(f"{which}, which blocks wave {block_wave(job)}, failed: {said}", has_failed=True)
    return Hold(f"waiting for {which}, which blocks wave {block_wave(job)} ({phase or 'not started'})")
