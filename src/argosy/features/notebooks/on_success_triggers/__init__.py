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
from argosy.features.notebooks.controller_prometheus_metrics import NotebookMetrics
from argosy.features.notebooks.go_durations import format_duration as duration
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import SUCCEEDED
from argosy.features.notebooks.on_success_triggers import execution, model_trial_pod, records
from argosy.features.notebooks.on_success_triggers.execution_context import MANAGER
from argosy.features.notebooks.on_success_triggers.records import (
    FAILED_STATUS,
    OPEN_STATUSES,
    PENDING_STATUS,
    SUCCEEDED_STATUS,
    TriggerRecord,
    add_trigger_records,
)
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import (
    DEFAULT_TIMEOUT_SECONDS,
    TriggerEntry,
    read_entries,
)
from argosy.kube.controller import ControllerContext, Requeue
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

log = logging.getLogger(__name__)
TRIGGERS_METRIC: Final = "argocd_triggers_total"
EVENT_REASONS: Final[Mapping[str, str]] = {SUCCEEDED_STATUS: "TriggerSuccess", FAILED_STATUS: "TriggerFailed"}

__all__ = ["TriggerHook", "add_trigger_records", "delete_trial_pods"]


@dataclass(frozen=True)
class TriggerProgress:
    record: TriggerRecord
    requeue_seconds: float | None = None


class TriggerHook:
    """Result hook that executes the triggers of a run."""

    def __init__(self, metrics: NotebookMetrics) -> None:
        self._metrics = metrics

    async def __call__(self, job: NotebookJob, live: Manifest, context: ControllerContext) -> Requeue | None:
        status = live.get("status") or {}
        run_records = records.list_run_records(job, status)
        if status.get("phase") != SUCCEEDED or not run_records:
            return None
        entries = {entry_item.digest: entry_item for entry_item in read_entries(job.annotations.get(ON_SUCCESS, ""))[0]}
        min_delay: float | None = None
        for record in run_records:
            if record.get("status") not in OPEN_STATUSES:
                continue
            now = context.clock.now()
            entry = entries.get(str(record.get("digest")))
            delay = records.compute_retry_delay(record, now)
            if not delay:
                progress = await self._advance(job, live, entry, record, context)
                live = await self._store_record(job, live, progress.record, context)
                delay = progress.requeue_seconds if progress.requeue_seconds is not None else 0.0
                record = progress.record
            if record.get("status") in OPEN_STATUSES:
                min_delay = delay if min_delay is None else min(min_delay, delay)
                if entry is not None and entry.waits and not record.get("nextTime"):
                    break  # later triggers wait, too
        await self._update_summary(job, live, context)
        return Requeue(min_delay) if min_delay is not None else None

    async def _advance(
        self,
        job: NotebookJob,
        live: Manifest,
        entry: TriggerEntry | None,
        record: TriggerRecord,
        context: ControllerContext,
    ) -> TriggerProgress:
        now = context.clock.now()
        if entry is None:
            stored_error = record.get("message") if record.get("status") == PENDING_STATUS else ""
            message = str(stored_error or "the trigger was removed from the annotation before it was done")
            return await self._end(job, live, record, FAILED_STATUS, message, context)
        started_record = records.mark_record_running(record, now)
        try:
            step_result = await execution.execute_trigger(entry, job, started_record, context)
        except ArgosyError as error:
            if _is_retryable(error) and not _is_timed_out(entry, started_record, now):
                return TriggerProgress(records.record_failed_try(started_record, str(error), now), 1.0)
            return await self._fail(job, live, entry, started_record, str(error), context)
        updated_record = {**started_record, **step_result.fields, "message": step_result.message}
        if step_result.requeue_seconds is None:
            return await self._end(job, live, updated_record, SUCCEEDED_STATUS, step_result.message, context)
        if _is_timed_out(entry, started_record, now):
            timeout_message = f"not done within {duration(entry.timeout)}: {step_result.message}"
            return await self._fail(job, live, entry, updated_record, timeout_message, context)
        updated_record.pop("nextTime", None)
        return TriggerProgress(updated_record, step_result.requeue_seconds)

    async def _fail(
        self,
        job: NotebookJob,
        live: Manifest,
        entry: TriggerEntry,
        record: TriggerRecord,
        message: str,
        context: ControllerContext,
    ) -> TriggerProgress:
        if entry.probe is not None:
            await execution.delete_trial(entry, job, record, context)
        return await self._end(job, live, record, FAILED_STATUS, message, context)

    async def _end(
        self,
        job: NotebookJob,
        live: Manifest,
        record: TriggerRecord,
        status: str,
        message: str,
        context: ControllerContext,
    ) -> TriggerProgress:
        """Write the Event before the status: after a crash in between, the same Event is written again."""
        now = context.clock.now()
        ended_record = records.end_record(record, status, message, now)
        trigger_id = records.build_trigger_id(job, record)
        event_message = _describe_record(ended_record)
        draft = events.JobEvent(EVENT_REASONS[status], event_message, trigger_id, is_warning=status == FAILED_STATUS)
        if await events.write_event(job, live, draft, context.cluster, now):
            log.log(
                logging.WARNING if status == FAILED_STATUS else logging.INFO,
                "%s: %s: %s",
                job.key,
                EVENT_REASONS[status],
                event_message,
            )
        return TriggerProgress(ended_record)

    async def _store_record(
        self, job: NotebookJob, live: Manifest, record: TriggerRecord, context: ControllerContext
    ) -> Manifest:
        stored_records: Sequence[TriggerRecord] = (live.get("status") or {}).get("triggers") or ()
        triggers = records.replace_record(stored_records, record)
        if triggers == [dict(stored_record) for stored_record in stored_records]:
            return live
        metadata = {"resourceVersion": live["metadata"]["resourceVersion"], "uid": job.uid}
        patch: dict[str, Any] = {"metadata": metadata, "status": {"triggers": triggers}}
        stored = await context.cluster.patch(job.key, patch, subresource="status", manager=MANAGER)
        if record.get("status") in EVENT_REASONS:
            labels = {"action": str(record.get("action") or ""), "status": str(record["status"]).lower()}
            self._metrics.count(TRIGGERS_METRIC, labels)
        return stored

    async def _update_summary(self, job: NotebookJob, live: Manifest, context: ControllerContext) -> None:
        """Update the summary annotation."""
        summary_text = records.render_summary(job, records.list_run_records(job, live.get("status") or {}))
        if get_annotation(live, TRIGGER_STATUS) != summary_text:
            patch = {"metadata": {"annotations": {TRIGGER_STATUS: summary_text}}}
            await context.cluster.patch(job.key, patch, manager=MANAGER)


async def delete_trial_pods(job: NotebookJob, live: Manifest, context: ControllerContext) -> Requeue | None:
    """Delete trial Pods of the previous run when a new run starts, whether or not their end was recorded."""
    for record in (live.get("status") or {}).get("triggers") or ():
        if record.get("status") in OPEN_STATUSES and record.get("kind") == INFERENCE_SERVICE.kind:
            target = (str(record.get("namespace") or ""), str(record.get("name") or ""))
            await model_trial_pod.delete_if_exists(
                model_trial_pod.build_trial_key(*target, records.build_trigger_id(job, record)), context.cluster
            )
    return None


def _is_retryable(error: ArgosyError) -> bool:
    if isinstance(error, ClusterError):
        return error.is_retryable or isinstance(error, Conflict)
    return isinstance(error, TransientError)


def _is_timed_out(entry: TriggerEntry, record: TriggerRecord, now: datetime) -> bool:
    started_at = deadlines.parse_time(record.get("startTime")) or now
    return (now - started_at).total_seconds() > (entry.timeout or DEFAULT_TIMEOUT_SECONDS)


def _describe_record(record: TriggerRecord) -> str:
    target_text = f"{record.get('kind', '')} {record.get('namespace', '')}/{record.get('name', '')}"
    if not record.get("action") or not record.get("name"):
        return str(record.get("message"))
    return f"{record['action']} {target_text}: {record.get('message')}"
