"""Triggers of a succeeded job: restarts, syncs and refreshes.

In: a job whose result is stored. Out: each trigger executed once, with an Event and metrics. Never: acts before the
result is stored, or for a failed job; changes the job's result.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from argosy.annotations import ON_SUCCESS, TRIGGER_STATUS
from argosy.errors import ArgosyError, ClusterError, Conflict, TransientError
from argosy.features.notebooks import deadlines, events
from argosy.features.notebooks.durations import written as duration
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.metrics import Metrics
from argosy.features.notebooks.statuses import SUCCEEDED
from argosy.features.notebooks.triggers import execution, records, trials
from argosy.features.notebooks.triggers.entries import SERVICE, TIMEOUT, Entry, read_entries
from argosy.features.notebooks.triggers.records import DONE, FAILED, OPEN, PENDING, Record, pledged
from argosy.features.notebooks.triggers.turns import MANAGER
from argosy.kube.controller import Context, Requeue
from argosy.kube.objects import Manifest, annotation

log = logging.getLogger(__name__)
COUNTED: Final = "argocd_triggers_total"
REASONS: Final[Mapping[str, str]] = {DONE: "TriggerSuccess", FAILED: "TriggerFailed"}

__all__ = ["Triggers", "give_up", "pledged"]


@dataclass(frozen=True)
class Stepped:
    record: Record
    again: float | None = None


class Triggers:
    """Result hook that executes the triggers of a run."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, job: Job, live: Manifest, context: Context) -> Requeue | None:
        status = live.get("status") or {}
        mine = records.of_run(job, status)
        if status.get("phase") != SUCCEEDED or not mine:
            return None
        entries = {each.digest: each for each in read_entries(job.annotations.get(ON_SUCCESS, ""))[0]}
        soonest: float | None = None
        for record in mine:
            if record.get("status") not in OPEN:
                continue
            now = context.clock.now()
            entry = entries.get(str(record.get("digest")))
            wait = records.waits_for(record, now)
            if not wait:
                stepped = await self._step(job, live, entry, record, context)
                live = await self._store(job, live, stepped.record, context)
                wait = stepped.again if stepped.again is not None else 0.0
                record = stepped.record
            if record.get("status") in OPEN:
                soonest = wait if soonest is None else min(soonest, wait)
                if entry is not None and entry.waits and not record.get("nextTime"):
                    break  # later triggers wait, too
        await self._tell_all(job, live, context)
        return Requeue(soonest) if soonest is not None else None

    async def _step(self, job: Job, live: Manifest, entry: Entry | None, record: Record, context: Context) -> Stepped:
        now = context.clock.now()
        if entry is None:
            fault = record.get("message") if record.get("status") == PENDING else ""
            said = str(fault or "the trigger was removed from the annotation before it was done")
            return await self._ended(job, live, record, FAILED, said, context)
        begun = records.begun(record, now)
        try:
            acted = await execution.act(entry, job, begun, context)
        except ArgosyError as error:
            if _may_pass(error) and not _is_late(entry, begun, now):
                return Stepped(records.tried(begun, str(error), now), 1.0)
            return await self._failed(job, live, entry, begun, str(error), context)
        found = {**begun, **acted.fields, "message": acted.message}
        if acted.again is None:
            return await self._ended(job, live, found, DONE, acted.message, context)
        if _is_late(entry, begun, now):
            late = f"not done within {duration(entry.timeout)}: {acted.message}"
            return await self._failed(job, live, entry, found, late, context)
        found.pop("nextTime", None)
        return Stepped(found, acted.again)

    async def _failed(
        self, job: Job, live: Manifest, entry: Entry, record: Record, message: str, context: Context
    ) -> Stepped:
        if entry.probe is not None:
            await execution.forget(entry, job, record, context)
        return await self._ended(job, live, record, FAILED, message, context)

    async def _ended(
        self, job: Job, live: Manifest, record: Record, status: str, message: str, context: Context
    ) -> Stepped:
        """Write the Event before the status: after a crash in between, the same Event is written again."""
        now = context.clock.now()
        found = records.ended(record, status, message, now)
        mark = records.mark_of(job, record)
        said = _sentence(found)
        happening = events.Happening(REASONS[status], said, mark, is_warning=status == FAILED)
        if await events.tell(job, live, happening, context.cluster, now):
            log.log(logging.WARNING if status == FAILED else logging.INFO, "%s: %s: %s", job.key, REASONS[status], said)
        return Stepped(found)

    async def _store(self, job: Job, live: Manifest, record: Record, context: Context) -> Manifest:
        known: Sequence[Record] = (live.get("status") or {}).get("triggers") or ()
        triggers = records.replaced(known, record)
        if triggers == [dict(each) for each in known]:
            return live
        metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "uid": job.uid}
        patch: dict[str, Any] = {"metadata": metadata, "status": {"triggers": triggers}}
        stored = await context.cluster.patch(job.key, patch, subresource="status", manager=MANAGER)
        if record.get("status") in REASONS:
            labels = {"action": str(record.get("action") or ""), "status": str(record["status"]).lower()}
            self._metrics.count(COUNTED, labels)
        return stored

    async def _tell_all(self, job: Job, live: Manifest, context: Context) -> None:
        """Update the summary annotation."""
        told = records.summary(job, records.of_run(job, live.get("status") or {}))
        if annotation(live, TRIGGER_STATUS) != told:
            patch = {"metadata": {"annotations": {TRIGGER_STATUS: told}}}
            await context.cluster.patch(job.key, patch, manager=MANAGER)


async def give_up(job: Job, live: Manifest, context: Context) -> Requeue | None:
    """Delete trial Pods of the previous run when a new run starts, whether or not their end was recorded."""
    for record in (live.get("status") or {}).get("triggers") or ():
        if record.get("status") in OPEN and record.get("kind") == SERVICE.kind:
            where = (str(record.get("namespace") or ""), str(record.get("name") or ""))
            await trials.take_away(trials.key_for(*where, records.mark_of(job, record)), context.cluster)
    return None


def _may_pass(error: ArgosyError) -> bool:
    if isinstance(error, ClusterError):
        return error.may_pass or isinstance(error, Conflict)
    return isinstance(error, TransientError)


def _is_late(entry: Entry, record: Record, now: datetime) -> bool:
    began = deadlines.moment(record.get("startTime")) or now
    return (now - began).total_seconds() > (entry.timeout or TIMEOUT)


def _sentence(record: Record) -> str:
    which = f"{record.get('kind', '')} {record.get('namespace', '')}/{record.get('name', '')}"
    if not record.get("action") or not record.get("name"):
        return str(record.get("message"))
    return f"{record['action']} {which}: {record.get('message')}"
