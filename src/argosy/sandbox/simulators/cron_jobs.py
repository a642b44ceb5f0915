"""Simulates the CronJob controller: creates a Job whenever the schedule is due.

In: the key of a CronJob. Out: Jobs, their history, its status. Never: starts a Job twice for one scheduled time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CRON_JOB, JOB
from argosy.sandbox.simulators.conditional_writes import (
    create_if_absent,
    delete_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.cron_due_times import MISSED_TIMES_WARNING_THRESHOLD, DueTimes, compute_due_times
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.job_status import find_true_condition, is_finished
from argosy.sandbox.simulators.owner_references_and_marks import (
    build_owner_reference,
    enqueue_if_unmarked,
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.timestamps_and_durations import seconds_until_deadline

SCHEDULED_TIME_ANNOTATION: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
MAX_REQUEUE_SECONDS: Final = 3600.0
HISTORY_LIMITS: Final = (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1))


class CronJobController:
    name = "simulated-cronjobs"
    watches = (Watch(CRON_JOB, enqueue_if_unmarked), Watch(JOB, map_to_owner(CRON_JOB)))

    def __init__(self) -> None:
        self._events = EventRecorder("cronjob-controller")

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        cron_job = context.cache.get(key)
        if cron_job is None or is_being_deleted(cron_job) or is_simulated_by_other_addon(cron_job):
            return None
        jobs, now = _list_owned_jobs(cron_job, context.cache), context.clock.now()
        await self._delete_old_jobs(cron_job, jobs, context)
        active = [job for job in jobs if not is_finished(job) and not is_being_deleted(job)]
        if cron_job["spec"].get("suspend"):
            await self._update_status(cron_job, jobs, active, None, context)
            return None
        try:
            due_times = compute_due_times(cron_job, now)
        except UserError as error:
            await self._events.record(
                cron_job, [EventDraft("UnparseableSchedule", str(error), is_warning=True)], context
            )
            return None
        scheduled_time = None
        if due_times.last_missed is not None:
            scheduled_time = await self._start_job(cron_job, due_times, active, context)
        await self._update_status(cron_job, jobs, active, scheduled_time, context)
        if due_times.next_time is None:
            return None
        return Requeue(min(max(seconds_until_deadline(due_times.next_time, 0.0, now), 0.0) + 0.01, MAX_REQUEUE_SECONDS))

    async def _start_job(
        self, cron_job: Manifest, due_times: DueTimes, active: Sequence[Manifest], context: ControllerContext
    ) -> datetime | None:
        assert due_times.last_missed is not None
        if due_times.missed_count > MISSED_TIMES_WARNING_THRESHOLD:
            message = (
                f"too many missed start times: {due_times.missed_count}. Set or decrease .spec.startingDeadlineSeconds"
            )
            await self._events.record(cron_job, [EventDraft("TooManyMissedTimes", message, is_warning=True)], context)
        policy = cron_job["spec"].get("concurrencyPolicy") or "Allow"
        if policy == "Forbid" and active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            await self._events.record(cron_job, [EventDraft("JobAlreadyActive", message)], context)
            return None
        for active_job in active if policy == "Replace" else ():
            await delete_object(active_job, context.cluster)
            event = EventDraft("SuccessfulDelete", f"Deleted job {active_job['metadata']['name']}")
            await self._events.record(cron_job, [event], context)
        job = build_job(cron_job, due_times.last_missed)
        if await create_if_absent(job, context.cluster):
            event = EventDraft("SuccessfulCreate", f"Created job {job['metadata']['name']}")
            await self._events.record(cron_job, [event], context)
        return due_times.last_missed

    async def _update_status(
        self,
        cron_job: Manifest,
        jobs: Sequence[Manifest],
        active: Sequence[Manifest],
        scheduled_time: datetime | None,
        context: ControllerContext,
    ) -> None:
        """Write the status, and record an event for each Job that the old status lists as active and that has
        finished."""
        status = cron_job.get("status") or {}
        active_uids = {item.get("uid") for item in status.get("active") or ()}
        completion_times = [str((item.get("status") or {}).get("completionTime") or "") for item in jobs]
        new_status: dict[str, Any] = {
            "active": [_build_job_reference(item) for item in sorted(active, key=_read_name)] or None,
            "lastSuccessfulTime": max([*completion_times, str(status.get("lastSuccessfulTime") or "")]) or None,
        }
        if scheduled_time:
            new_status["lastScheduleTime"] = format_timestamp(scheduled_time)
        if not await update_status_if_changed(cron_job, new_status, context.cluster):
            return
        for item in jobs:
            if item["metadata"]["uid"] in active_uids and is_finished(item):
                condition_type = "Complete" if find_true_condition(item, "Complete") else "Failed"
                message = f"Saw completed job: {_read_name(item)}, condition: {condition_type}"
                await self._events.record(cron_job, [EventDraft("SawCompletedJob", message)], context)

    async def _delete_old_jobs(self, cron_job: Manifest, jobs: Sequence[Manifest], context: ControllerContext) -> None:
        for type_, field, default_limit in HISTORY_LIMITS:
            finished_jobs = [job for job in jobs if find_true_condition(job, type_) and not is_being_deleted(job)]
            finished_jobs.sort(key=lambda job: str((job.get("status") or {}).get("startTime") or ""))
            surplus = len(finished_jobs) - int(cron_job["spec"].get(field, default_limit))
            for job in finished_jobs[: max(surplus, 0)]:
                await delete_object(job, context.cluster)
                await self._events.record(
                    cron_job, [EventDraft("SuccessfulDelete", f"Deleted job {_read_name(job)}")], context
                )


def build_job(cron_job: Manifest, scheduled_time: datetime) -> Manifest:
    """Build the Job for one scheduled time.

    The name contains the scheduled minute, so that a Job is never created twice.
    """
    template, metadata = cron_job["spec"]["jobTemplate"], cron_job["metadata"]
    template_metadata = template.get("metadata") or {}
    annotations = {
        **(template_metadata.get("annotations") or {}),
        SCHEDULED_TIME_ANNOTATION: scheduled_time.isoformat().replace("+00:00", "Z"),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{metadata['name'][:52]}-{int(scheduled_time.astimezone(UTC).timestamp()) // 60}",
            "namespace": metadata["namespace"],
            "labels": template_metadata.get("labels") or {},
            "annotations": annotations,
            "ownerReferences": [build_owner_reference(cron_job)],
        },
        "spec": template["spec"],
    }


def _list_owned_jobs(cron_job: Manifest, cache: InformerCache) -> list[Manifest]:
    uid = cron_job["metadata"]["uid"]
    return [
        job
        for job in cache.list_owned(uid)
        if job["kind"] == "Job" and (find_controller_reference(job) or {}).get("uid") == uid
    ]


def _build_job_reference(job: Manifest) -> dict[str, str]:
    metadata = job["metadata"]
    fields = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
    return {"apiVersion": "batch/v1", "kind": "Job", **fields}


def _read_name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])
