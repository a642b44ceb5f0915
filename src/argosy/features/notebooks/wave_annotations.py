"""What a job says of its wave, for those who wait for it: hooks, scripts, other Applications.

In: a job that begins a run, or whose result is stored. Out: annotations on it. Never: leaves the word of an earlier run
standing while another goes on; writes more than annotations.
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
    """Before a run begins: whoever waits must not take the last result for its result."""
    await _write(job, dict.fromkeys(WRITTEN), context)
    return None


async def mark(job: Job, live: Manifest, context: Context) -> Requeue | None:
    """argo: a manifest without a wave is of wave 0."""
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
    """A merge patch of what differs: whoever else writes the job is not in the way."""
    changed = {name: value for name, value in wanted.items() if job.annotations.get(name) != value}
    if changed:
        await context.cluster.patch(job.key, {"metadata": {"annotations": changed}}, manager=MANAGER)
