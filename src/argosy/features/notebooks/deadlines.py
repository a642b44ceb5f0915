"""Deadlines and polling intervals of a job.

In: a job, its status, the time. Out: seconds. Never: reads a clock; decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.notebook_validation_job_status import Status
from argosy.kube.objects.timestamps_and_delays import remaining_delay

YOUNG_RUN_POLL_SECONDS, WAITING_RUN_POLL_SECONDS, RUN_POLL_SECONDS = 0.25, 0.5, 1.0
YOUNG_RUN_SECONDS: Final = 20.0  # seconds in which a new run is polled more often


def parse_time(text: Any) -> datetime | None:
    return datetime.fromisoformat(str(text)) if text else None


def get_last_attempt(status: Status) -> Mapping[str, Any] | None:
    """The last attempt, whether or not it has ended."""
    attempts = status.get("attempts") or ()
    return attempts[-1] if attempts else None


def compute_deadline(job: NotebookJob, status: Status) -> datetime | None:
    """The timeout starts with the first attempt of this run and covers all attempts."""
    started_at = parse_time(status.get("startTime"))
    if started_at is None:
        return None
    attempt_starts = [parse_time(entry.get("startTime")) for entry in status.get("attempts") or ()]
    first_start = min((entry for entry in attempt_starts if entry is not None and entry >= started_at), default=None)
    return first_start + timedelta(seconds=job.timeout) if first_start else None


def compute_seconds_left(job: NotebookJob, status: Status, now: datetime) -> float:
    """Seconds of the job's timeout that are left for this attempt."""
    deadline_at = compute_deadline(job, status)
    return job.timeout if deadline_at is None else min(max((deadline_at - now).total_seconds(), 1.0), job.timeout)


def compute_retry_delay(job: NotebookJob, status: Status, now: datetime) -> float | None:
    """Seconds until the next attempt; None while one is running."""
    last_attempt = get_last_attempt(status)
    if last_attempt is None or not last_attempt.get("completionTime"):
        return None
    since = parse_time(status.get("lastRetryTime")) or now
    return remaining_delay(since, job.retry.compute_delay(int(status.get("retryCount") or 1)), now)


def get_running_since(status: Status, now: datetime) -> datetime:
    for condition in status.get("conditions") or ():
        if condition["type"] == "ValidationStarted" and condition["status"] == "True":
            return parse_time(condition["lastTransitionTime"]) or now
    return now


def choose_poll_seconds(status: Status, now: datetime) -> float:
    since = parse_time((get_last_attempt(status) or {}).get("startTime"))
    if since is None:
        return WAITING_RUN_POLL_SECONDS
    return YOUNG_RUN_POLL_SECONDS if (now - since).total_seconds() < YOUNG_RUN_SECONDS else RUN_POLL_SECONDS
