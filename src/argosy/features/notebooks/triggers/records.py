"""What is known of a run's triggers: in `status.triggers`, and in short in an annotation.

In: a job, its status, what came of an entry. Out: records. Never: asks a cluster.
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
    """The status that is about to be stored, with all that this run sets off, where it succeeds with it.

    Result and pledge are stored at once: whoever reads the result knows what is to be done, and an annotation that
    somebody writes later sets nothing off.
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
    return {**record, "status": SKIPPED, "message": "another run began before it was done"}


def _of_entry(job: Job, attempt: int, entry: Entry) -> dict[str, Any]:
    return {
        "generation": job.generation, "attempt": attempt, "digest": entry.digest, "action": entry.action,
        "apiVersion": entry.api_version, "kind": entry.kind, "name": entry.name,
        "namespace": entry.namespace or job.namespace, "status": PENDING,
    }  # fmt: skip


def _of_fault(job: Job, attempt: int, fault: Fault) -> dict[str, Any]:
    """Pending too: that it failed is told in its turn."""
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
    """What tells this trigger of this run from every other one, on whatever it is carried out."""
    parts = (job.uid, record.get("generation"), record.get("attempt"), record.get("digest"))
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()[:16]


def waits_for(record: Record, now: datetime) -> float:
    """Seconds until the next try."""
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
    """It did not work this time: again in 1, 2, 4 … seconds."""
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
    """For `mlops.dev/trigger-status`."""
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
