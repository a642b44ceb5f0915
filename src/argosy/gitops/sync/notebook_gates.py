"""Which notebooks hold back a wave, because their annotation says so. Pure.

In: a wave of an application, the NotebookValidationJobs that live. Out: why it must wait, or why it will never begin.
Never: looks at health: a job blocks by what it says itself, whatever a sync waits for otherwise.
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
LOOK: Final = 2.0  # seconds: a job of another application wakes only its own
LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Hold:
    message: str
    has_failed: bool = False  # it will not begin, unless somebody does something


Holds = Callable[[int], Hold | None]


def hold(wave: int, jobs: Iterable[Manifest], app: Application, own: Collection[ResourceKey]) -> Hold | None:
    """`own` are the jobs that the application delivers itself. What has failed counts before what is awaited."""
    found = [told for job in sorted(jobs, key=key_of) if _blocks(job, wave, app, own) and (told := _told(job))]
    return next((each for each in found if each.has_failed), found[0] if found else None)


def _blocks(job: Manifest, wave: int, app: Application, own: Collection[ResourceKey]) -> bool:
    blocked = block_wave(job)
    if blocked is None or wave < blocked or job["metadata"].get("deletionTimestamp"):
        return False
    if key_of(job) in own:
        return wave_of(job) < blocked  # else it would wait for itself
    named = (annotation_text(job, names.BLOCK_APPLICATION) or "").replace(",", " ").split()
    if named:
        return app.name in named or f"{app.key.namespace}/{app.name}" in named
    return bool(job["metadata"].get("namespace") == app.destination.namespace)


def block_wave(job: Manifest) -> int | None:
    """None where there is none, or nobody can read it."""
    text = (annotation_text(job, names.BLOCK_WAVE) or "").strip()
    try:
        return int(text) if text else None
    except ValueError:
        return None


def _told(job: Manifest) -> Hold | None:
    """None: it has succeeded, with the spec that it has now and the run that was last asked for."""
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
    return Hold(f"waiting for {which}, which blocks wave {block_wave(job)} ({phase or 'its run has not begun'})")
