"""Controller of the notebook summary annotations on Applications.

In: the key of an Application that jobs refer to. Out: two annotations, merge-patched if they changed. Never: writes
more often than needed; loses the last change.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NamedTuple

from argosy.annotations import NOTEBOOK_STATUS, NOTEBOOK_SUMMARY
from argosy.errors import ClusterError
from argosy.features.notebooks import application_summary
from argosy.kube.controller import ControllerContext, Requeue, Watch
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

log = logging.getLogger(__name__)
MANAGER: Final = "notebooks"
PROGRESS_WRITE_INTERVAL_SECONDS: Final = 60.0  # seconds after a write in which progress is not written
RESULT_WRITE_INTERVAL_SECONDS: Final = 5.0  # seconds after a write in which results are not written
RESYNC_SECONDS, MISSING_APPLICATION_RETRY_SECONDS = 300.0, 15.0
MAX_CACHED_APPLICATIONS: Final = 10_000


class CheckedSummary(NamedTuple):
    """Last computed counts, and until when they need no recheck."""

    counts: dict[str, Any]
    uids: frozenset[str]
    until: float


class NotebookSummaryController:
    """Writes the first change at once and batches the following ones."""

    name = "notebook summaries"
    watches = (Watch(NOTEBOOK_JOB, application_summary.list_application_keys),)

    def __init__(self) -> None:
        self._written_at: dict[ResourceKey, float] = {}
        self._checked: dict[ResourceKey, CheckedSummary] = {}

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        """Called for every finished cell; unchanged counts cause no API request."""
        jobs = [
            job for job in context.cache.list(NOTEBOOK_JOB) if key in application_summary.list_application_keys(job)
        ]
        counts, uids = application_summary.count_jobs(jobs), frozenset(str(job["metadata"].get("uid")) for job in jobs)
        checked, now = self._checked.get(key), context.clock.monotonic()
        if checked is not None and checked[:2] == (counts, uids) and now < checked.until:
            return Requeue(checked.until - now)
        app = await _get_application(key, context)
        if app is None:
            self._written_at.pop(key, None)
            return (
                self._remember(key, CheckedSummary(counts, uids, now + MISSING_APPLICATION_RETRY_SECONDS))
                if jobs
                else None
            )
        wait = await self._write_summary(
            key, app, [job for job in jobs if await _has_precedence(job, key, context)], context
        )
        if wait:
            return Requeue(wait)
        return self._remember(key, CheckedSummary(counts, uids, now + RESYNC_SECONDS)) if jobs else None

    def _remember(self, key: ResourceKey, checked: CheckedSummary) -> Requeue:
        if len(self._checked) >= MAX_CACHED_APPLICATIONS:
            self._checked.clear()
        self._checked[key] = checked
        return Requeue(RESYNC_SECONDS)

    async def _write_summary(
        self, key: ResourceKey, app: Manifest, jobs: list[Manifest], context: ControllerContext
    ) -> float:
        """Write the annotations if they changed; returns seconds to wait, 0 if done."""
        counts, stored_counts = (
            application_summary.count_jobs(jobs),
            application_summary.counts_from_json(get_annotation(app, NOTEBOOK_STATUS)),
        )
        summary_text = application_summary.render_summary(counts)
        if (not jobs and stored_counts is None) or (
            counts == stored_counts and get_annotation(app, NOTEBOOK_SUMMARY) == summary_text
        ):
            return 0.0
        now = context.clock.monotonic()
        pause = (
            PROGRESS_WRITE_INTERVAL_SECONDS
            if application_summary.get_urgent_counts(counts) == application_summary.get_urgent_counts(stored_counts)
            else RESULT_WRITE_INTERVAL_SECONDS
        )
        if (wait := self._written_at.get(key, now - pause) + pause - now) > 0:
            return wait
        # Patch only two annotations: the controller of the Application writes the rest all the time.
        annotations = {
            NOTEBOOK_STATUS: application_summary.counts_to_json(counts, context.clock.now()),
            NOTEBOOK_SUMMARY: summary_text,
        }
        await context.cluster.patch(key, {"metadata": {"annotations": annotations}}, manager=MANAGER)
        self._written_at[key] = now
        log.info("%s: %s", key, summary_text)
        return 0.0


async def _get_application(key: ResourceKey, context: ControllerContext) -> Manifest | None:
    try:
        return await context.cluster.get(key)
    except ClusterError as error:
        if error.code != 404:  # k8s: a cluster without Argo CD does not serve the kind
            raise
        return None


async def _has_precedence(job: Manifest, key: ResourceKey, context: ControllerContext) -> bool:
    """True if no Application with higher precedence exists for this job."""
    candidates = application_summary.list_application_keys(job)
    for candidate in candidates[: candidates.index(key)]:
        if await _get_application(candidate, context) is not None:
            return False
    return True
