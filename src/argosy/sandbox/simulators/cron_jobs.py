"""Simulates the CronJob controller: creates a Job whenever the schedule is due.

In: the key of a CronJob. Out: Jobs, their history, its status. Never: starts a Job twice for one scheduled time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from argosy.errors import UserError
from argosy.kube.controller import Cache, Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import (
    CRON_JOB,
    JOB,
    is_dying,
    is_played_by_others,
    owner_of,
    reference_to,
    unmarked,
)
from argosy.sandbox.simulators.cron_schedule import MANY, Due, due
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.job_status import condition, is_finished
from argosy.sandbox.simulators.timestamps import left, stamp
from argosy.sandbox.simulators.writes import create_once, keep_status, patient, remove

SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
LONGEST_WAIT: Final = 3600.0
LIMITS: Final = (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1))


class CronJobs:
    name = "simulated-cronjobs"
    watches = (Watch(CRON_JOB, unmarked), Watch(JOB, owner(CRON_JOB)))

    def __init__(self) -> None:
        self._events = Recorder("cronjob-controller")

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return None
        jobs, now = _jobs_of(live, context.cache), context.clock.now()
        await self._forget(live, jobs, context)
        active = [each for each in jobs if not is_finished(each) and not is_dying(each)]
        if live["spec"].get("suspend"):
            await self._report(live, jobs, active, None, context)
            return None
        try:
            when = due(live, now)
        except UserError as error:
            await self._events.tell(live, [Happening("UnparseableSchedule", str(error), is_warning=True)], context)
            return None
        started = None
        if when.last is not None:
            started = await self._start(live, when, active, context)
        await self._report(live, jobs, active, started, context)
        if when.next is None:
            return None
        return Requeue(min(max(left(when.next, 0.0, now), 0.0) + 0.01, LONGEST_WAIT))

    async def _start(self, live: Manifest, when: Due, active: Sequence[Manifest], context: Context) -> datetime | None:
        assert when.last is not None
        if when.missed > MANY:
            message = f"too many missed start times: {when.missed}. Set or decrease .spec.startingDeadlineSeconds"
            await self._events.tell(live, [Happening("TooManyMissedTimes", message, is_warning=True)], context)
        policy = live["spec"].get("concurrencyPolicy") or "Allow"
        if policy == "Forbid" and active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            await self._events.tell(live, [Happening("JobAlreadyActive", message)], context)
            return None
        for each in active if policy == "Replace" else ():
            await remove(each, context.cluster)
            happening = Happening("SuccessfulDelete", f"Deleted job {each['metadata']['name']}")
            await self._events.tell(live, [happening], context)
        job = job_for(live, when.last)
        if await create_once(job, context.cluster):
            happening = Happening("SuccessfulCreate", f"Created job {job['metadata']['name']}")
            await self._events.tell(live, [happening], context)
        return when.last

    async def _report(
        self,
        live: Manifest,
        jobs: Sequence[Manifest],
        active: Sequence[Manifest],
        started: datetime | None,
        context: Context,
    ) -> None:
        """Write the status, and record an event for each Job that the old status lists as active and that has
        finished."""
        status = live.get("status") or {}
        was_active = {each.get("uid") for each in status.get("active") or ()}
        ends = [str((each.get("status") or {}).get("completionTime") or "") for each in jobs]
        wanted: dict[str, Any] = {
            "active": [_reference(each) for each in sorted(active, key=_name)] or None,
            "lastSuccessfulTime": max([*ends, str(status.get("lastSuccessfulTime") or "")]) or None,
        }
        if started:
            wanted["lastScheduleTime"] = stamp(started)
        if not await keep_status(live, wanted, context.cluster):
            return
        for each in jobs:
            if each["metadata"]["uid"] in was_active and is_finished(each):
                how = "Complete" if condition(each, "Complete") else "Failed"
                message = f"Saw completed job: {_name(each)}, condition: {how}"
                await self._events.tell(live, [Happening("SawCompletedJob", message)], context)

    async def _forget(self, live: Manifest, jobs: Sequence[Manifest], context: Context) -> None:
        for type_, field, usual in LIMITS:
            ended = [each for each in jobs if condition(each, type_) and not is_dying(each)]
            ended.sort(key=lambda each: str((each.get("status") or {}).get("startTime") or ""))
            surplus = len(ended) - int(live["spec"].get(field, usual))
            for each in ended[: max(surplus, 0)]:
                await remove(each, context.cluster)
                await self._events.tell(live, [Happening("SuccessfulDelete", f"Deleted job {_name(each)}")], context)


def job_for(live: Manifest, when: datetime) -> Manifest:
    """Build the Job for one scheduled time.

    The name contains the scheduled minute, so that a Job is never created twice.
    """
    template, metadata = live["spec"]["jobTemplate"], live["metadata"]
    about = template.get("metadata") or {}
    annotations = {**(about.get("annotations") or {}), SCHEDULED: when.isoformat().replace("+00:00", "Z")}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"{metadata['name'][:52]}-{int(when.astimezone(UTC).timestamp()) // 60}",
            "namespace": metadata["namespace"],
            "labels": about.get("labels") or {},
            "annotations": annotations,
            "ownerReferences": [reference_to(live)],
        },
        "spec": template["spec"],
    }


def _jobs_of(live: Manifest, cache: Cache) -> list[Manifest]:
    uid = live["metadata"]["uid"]
    return [each for each in cache.owned(uid) if each["kind"] == "Job" and (owner_of(each) or {}).get("uid") == uid]


def _reference(job: Manifest) -> dict[str, str]:
    metadata = job["metadata"]
    fields = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
    return {"apiVersion": "batch/v1", "kind": "Job", **fields}


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])
