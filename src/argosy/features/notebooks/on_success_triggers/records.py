"""Trigger records of a run: in `status.triggers`, and summarized in an annotation.

In: a job, its status, the result of an entry. Out: records. Never: talks to a cluster.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from argosy.annotations import ON_SUCCESS
from argosy.features.notebooks import deadlines
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import SUCCEEDED, TERMINAL, Status
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import (
    InvalidTrigger,
    TriggerEntry,
    read_entries,
)
from argosy.kube.objects.timestamps_and_delays import format_timestamp, remaining_delay
from argosy.observability.redaction.text_redaction import redact

PENDING_STATUS, RUNNING_STATUS, SUCCEEDED_STATUS, FAILED_STATUS, SKIPPED_STATUS = (
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Skipped",
)
OPEN_STATUSES: Final = (PENDING_STATUS, RUNNING_STATUS)
MAX_RECORDS, MAX_MESSAGE_CHARACTERS = 60, 500
MAX_RETRY_DELAY_SECONDS: Final = 60.0

TriggerRecord = Mapping[str, Any]


def add_trigger_records(job: NotebookJob, before: Status, after: Status) -> Status:
    """Add the triggers of this run to the status that is about to be stored, if the run succeeded.

    Result and triggers are stored together: a reader of the result knows which triggers follow, and an annotation that
    is changed later triggers nothing.
    """
    if after.get("phase") not in TERMINAL or before.get("phase") in TERMINAL:
        return after
    old_records = [_skip_open_record(item) for item in after.get("triggers") or ()]
    text = job.annotations.get(ON_SUCCESS, "")
    if after.get("phase") != SUCCEEDED or not text.strip():
        return {**after, "triggers": old_records} if old_records else after
    entries, invalid = read_entries(text)
    attempt = get_attempt_number(after)
    new_records = [
        *(_build_record(job, attempt, item) for item in entries),
        *(_build_invalid_record(job, attempt, item) for item in invalid),
    ]
    return {**after, "triggers": [*old_records, *new_records][-MAX_RECORDS:]}


def _skip_open_record(record: TriggerRecord) -> dict[str, Any]:
    if record.get("status") not in OPEN_STATUSES:
        return dict(record)
    return {**record, "status": SKIPPED_STATUS, "message": "another run started before it was done"}


def _build_record(job: NotebookJob, attempt: int, entry: TriggerEntry) -> dict[str, Any]:
    return {
        "generation": job.generation, "attempt": attempt, "digest": entry.digest, "action": entry.action,
        "apiVersion": entry.api_version, "kind": entry.kind, "name": entry.name,
        "namespace": entry.namespace or job.namespace, "status": PENDING_STATUS,
    }  # fmt: skip


def _build_invalid_record(job: NotebookJob, attempt: int, invalid: InvalidTrigger) -> dict[str, Any]:
    """Also Pending: the failure is reported when it is its turn."""
    texts = {
        name: str(invalid.fields.get(name) or "") for name in ("action", "apiVersion", "kind", "name", "namespace")
    }
    known_fields = {name: value[:253] for name, value in texts.items() if value}
    run_fields = {"generation": job.generation, "attempt": attempt, "digest": invalid.digest}
    return {**run_fields, **known_fields, "status": PENDING_STATUS, "message": invalid.message[:MAX_MESSAGE_CHARACTERS]}


# -- reading -----------------------------------------------------------------------------------------------------------


def get_attempt_number(status: Status) -> int:
    return int((deadlines.get_last_attempt(status) or {}).get("number") or 1)


def list_run_records(job: NotebookJob, status: Status) -> list[TriggerRecord]:
    run_id = (job.generation, get_attempt_number(status))
    return [
        record for record in status.get("triggers") or () if (record.get("generation"), record.get("attempt")) == run_id
    ]


def build_trigger_id(job: NotebookJob, record: TriggerRecord) -> str:
    """Id of this trigger in this run, used as mark on the target."""
    parts = (job.uid, record.get("generation"), record.get("attempt"), record.get("digest"))
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:16]


def compute_retry_delay(record: TriggerRecord, now: datetime) -> float:
    """Seconds until the next retry."""
    due_at = deadlines.parse_time(record.get("nextTime"))
    if due_at is None:
        return 0.0
    delay = _compute_backoff(int(record.get("tries") or 1))
    return remaining_delay(due_at - timedelta(seconds=delay), delay, now)


def _compute_backoff(tries: int) -> float:
    return min(2.0 ** min(tries - 1, 10), MAX_RETRY_DELAY_SECONDS)


# -- writing -----------------------------------------------------------------------------------------------------------


def mark_record_running(record: TriggerRecord, now: datetime) -> dict[str, Any]:
    return {**record, "status": RUNNING_STATUS, "startTime": record.get("startTime") or format_timestamp(now)}


def record_failed_try(record: TriggerRecord, message: str, now: datetime) -> dict[str, Any]:
    """Record a failed try: retry in 1, 2, 4 … seconds."""
    tries = int(record.get("tries") or 0) + 1
    due_at = now + timedelta(seconds=_compute_backoff(tries))
    return {
        **record,
        "tries": tries,
        "message": _redact_and_truncate(message),
        "nextTime": format_timestamp(due_at, "milliseconds"),
    }


def end_record(record: TriggerRecord, status: str, message: str, now: datetime) -> dict[str, Any]:
    kept_fields = {name: value for name, value in record.items() if name not in ("nextTime", "pods", "acted")}
    return {**kept_fields, "status": status, "message": _redact_and_truncate(message), "time": format_timestamp(now)}


def replace_record(records: Sequence[TriggerRecord], new_record: TriggerRecord) -> list[dict[str, Any]]:
    record_id = [new_record.get(name) for name in ("generation", "attempt", "digest")]
    return [
        dict(new_record)
        if [record.get(name) for name in ("generation", "attempt", "digest")] == record_id
        else dict(record)
        for record in records
    ]


def render_summary(job: NotebookJob, records: Sequence[TriggerRecord]) -> str:
    """JSON for `mlops.dev/trigger-status`."""
    statuses = {str(record.get("status")) for record in records}
    overall = (
        RUNNING_STATUS
        if statuses & set(OPEN_STATUSES)
        else FAILED_STATUS
        if FAILED_STATUS in statuses
        else SUCCEEDED_STATUS
    )
    entries = [
        {
            name: record[name]
            for name in ("action", "kind", "namespace", "name", "status", "message")
            if record.get(name)
        }
        for record in records
    ]
    fields = {
        "generation": job.generation,
        "attempt": records[0].get("attempt"),
        "status": overall,
        "triggers": entries,
    }
    return json.dumps(fields, separators=(",", ":"))


def _redact_and_truncate(message: str) -> str:
    return redact(message)[:MAX_MESSAGE_CHARACTERS]
