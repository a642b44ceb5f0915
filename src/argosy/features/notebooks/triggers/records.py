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
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.redaction import redact
from argosy.features.notebooks.statuses import SUCCEEDED, TERMINAL, Status
from argosy.features.notebooks.triggers.entries import Entry, Fault, read_entries
from argosy.kube.objects.timestamps import remaining_delay, written

PENDING, RUNNING, DONE, FAILED, SKIPPED = "Pending", "Running", "Succeeded", "Failed", "Skipped"
OPEN: Final = (PENDING, RUNNING)
MOST_RECORDS, MOST_MESSAGE = 60, 500
SLOWEST: Final = 60.0

Record = Mapping[str, Any]


def pledged(job: Job, before: Status, after: Status) -> Status:
    """Add the triggers of this run to the status that is about to be stored, if the run succeeded.

    Result and triggers are stored together: a reader of the result knows which triggers follow, and an annotation that
    is changed later triggers nothing.
    """
    if after.get("phase") not in TERMINAL or before.get("phase") in TERMINAL:
        return after
    kept = [_passed_over(each) for each in after.get("triggers") or ()]
    text = job.annotations.get(ON_SUCCESS, "")
    if after.get("phase") != SUCCEEDED or not text.strip():
        return {**after, "triggers": kept} if kept else after
    entries, faults = read_entries(text)
    attempt = attempt_of(after)
    new = [*(_of_entry(job, attempt, each) for each in entries), *(_of_fault(job, attempt, each) for each in faults)]
    return {**after, "triggers": [*kept, *new][-MOST_RECORDS:]}


def _passed_over(record: Record) -> dict[str, Any]:
    if record.get("status") not in OPEN:
        return dict(record)
    return {**record, "status": SKIPPED, "message": "another run started before it was done"}


def _of_entry(job: Job, attempt: int, entry: Entry) -> dict[str, Any]:
    return {
        "generation": job.generation, "attempt": attempt, "digest": entry.digest, "action": entry.action,
        "apiVersion": entry.api_version, "kind": entry.kind, "name": entry.name,
        "namespace": entry.namespace or job.namespace, "status": PENDING,
    }  # fmt: skip


def _of_fault(job: Job, attempt: int, fault: Fault) -> dict[str, Any]:
    """Also Pending: the failure is reported when it is its turn."""
    told = {name: str(fault.written.get(name) or "") for name in ("action", "apiVersion", "kind", "name", "namespace")}
    known = {name: value[:253] for name, value in told.items() if value}
    place = {"generation": job.generation, "attempt": attempt, "digest": fault.digest}
    return {**place, **known, "status": PENDING, "message": fault.message[:MOST_MESSAGE]}


# -- reading -----------------------------------------------------------------------------------------------------------


def attempt_of(status: Status) -> int:
    return int((deadlines.attempt(status) or {}).get("number") or 1)


def of_run(job: Job, status: Status) -> list[Record]:
    which = (job.generation, attempt_of(status))
    return [each for each in status.get("triggers") or () if (each.get("generation"), each.get("attempt")) == which]


def mark_of(job: Job, record: Record) -> str:
    """Id of this trigger in this run, used as mark on the target."""
    parts = (job.uid, record.get("generation"), record.get("attempt"), record.get("digest"))
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:16]


def waits_for(record: Record, now: datetime) -> float:
    """Seconds until the next retry."""
    due = deadlines.moment(record.get("nextTime"))
    if due is None:
        return 0.0
    delay = _delay(int(record.get("tries") or 1))
    return remaining_delay(due - timedelta(seconds=delay), delay, now)


def _delay(tries: int) -> float:
    return min(2.0 ** min(tries - 1, 10), SLOWEST)


# -- writing -----------------------------------------------------------------------------------------------------------


def begun(record: Record, now: datetime) -> dict[str, Any]:
    return {**record, "status": RUNNING, "startTime": record.get("startTime") or written(now)}


def tried(record: Record, message: str, now: datetime) -> dict[str, Any]:
    """Record a failed try: retry in 1, 2, 4 … seconds."""
    tries = int(record.get("tries") or 0) + 1
    due = now + timedelta(seconds=_delay(tries))
    return {**record, "tries": tries, "message": _short(message), "nextTime": written(due, "milliseconds")}


def ended(record: Record, status: str, message: str, now: datetime) -> dict[str, Any]:
    kept = {name: value for name, value in record.items() if name not in ("nextTime", "pods", "acted")}
    return {**kept, "status": status, "message": _short(message), "time": written(now)}


def replaced(records: Sequence[Record], changed: Record) -> list[dict[str, Any]]:
    which = [changed.get(name) for name in ("generation", "attempt", "digest")]
    return [
        dict(changed) if [each.get(name) for name in ("generation", "attempt", "digest")] == which else dict(each)
        for each in records
    ]


def summary(job: Job, records: Sequence[Record]) -> str:
    """JSON for `mlops.dev/trigger-status`."""
    states = {str(each.get("status")) for each in records}
    overall = RUNNING if states & set(OPEN) else FAILED if FAILED in states else DONE
    shown = [
        {name: each[name] for name in ("action", "kind", "namespace", "name", "status", "message") if each.get(name)}
        for each in records
    ]
    told = {"generation": job.generation, "attempt": records[0].get("attempt"), "status": overall, "triggers": shown}
    return json.dumps(told, separators=(",", ":"))


def _short(message: str) -> str:
    return redact(message)[:MOST_MESSAGE]
