"""Deadlines and polling intervals of a job.

In: a job, its status, the time. Out: seconds. Never: reads a clock; decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from argosy.features.notebooks.job import Job
from argosy.features.notebooks.statuses import Status
from argosy.kube.objects.timestamps import remaining_delay

LOOK, WAITING, LATER = 0.25, 0.5, 1.0
YOUNG: Final = 20.0  # seconds in which a new run is polled more often


def moment(text: Any) -> datetime | None:
    return datetime.fromisoformat(str(text)) if text else None


def attempt(status: Status) -> Mapping[str, Any] | None:
    """The last attempt, whether or not it has ended."""
    attempts = status.get("attempts") or ()
    return attempts[-1] if attempts else None


def deadline(job: Job, status: Status) -> datetime | None:
    """The timeout starts with the first attempt of this run and covers all attempts."""
    begun = moment(status.get("startTime"))
    if begun is None:
        return None
    starts = [moment(each.get("startTime")) for each in status.get("attempts") or ()]
    first = min((each for each in starts if each is not None and each >= begun), default=None)
    return first + timedelta(seconds=job.timeout) if first else None


def time_left(job: Job, status: Status, now: datetime) -> float:
    """Seconds of the job's timeout that are left for this attempt."""
    until = deadline(job, status)
    return job.timeout if until is None else min(max((until - now).total_seconds(), 1.0), job.timeout)


def retries_in(job: Job, status: Status, now: datetime) -> float | None:
    """Seconds until the next attempt; None while one is running."""
    last = attempt(status)
    if last is None or not last.get("completionTime"):
        return None
    since = moment(status.get("lastRetryTime")) or now
    return remaining_delay(since, job.retry.wait(int(status.get("retryCount") or 1)), now)


def running_since(status: Status, now: datetime) -> datetime:
    for each in status.get("conditions") or ():
        if each["type"] == "ValidationStarted" and each["status"] == "True":
            return moment(each["lastTransitionTime"]) or now
    return now


def pace(status: Status, now: datetime) -> float:
    since = moment((attempt(status) or {}).get("startTime"))
    if since is None:
        return WAITING
    return LOOK if (now - since).total_seconds() < YOUNG else LATER
