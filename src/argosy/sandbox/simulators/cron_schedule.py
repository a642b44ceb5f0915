"""Computes when a CronJob is due.

In: a CronJob and the time. Out: the last missed time, the number of missed times, the next time. Never: reads a clock.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.languages import cron
from argosy.sandbox.simulators.timestamps import moment_of

MANY: Final = 100  # k8s: more missed start times than this cause a warning
MOST: Final = 10_000


class Due(NamedTuple):
    last: datetime | None  # the latest scheduled time that was not started; None: none is due
    missed: int
    next: datetime | None


def due(cron_job: Manifest, now: datetime) -> Due:
    """Compute the missed times and the next time. Raises UserError if the schedule or the time zone is invalid."""
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    schedule, zone = _schedule(str(spec["schedule"])), _zone(str(spec.get("timeZone") or "UTC"))
    since = moment_of(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    if (deadline := spec.get("startingDeadlineSeconds")) is not None:
        since = max(since, now - timedelta(seconds=float(deadline)))
    last, missed = None, 0
    moment = schedule.next(since.astimezone(zone))
    while moment is not None and moment <= now:
        last, missed = moment, missed + 1
        if missed > MOST:  # too many to count one by one: skip ahead to the last day
            since = max(since, now - timedelta(days=1))
            moment = schedule.next(max(moment, since.astimezone(zone)))
            continue
        moment = schedule.next(moment)
    return Due(last, missed, moment)


def _schedule(text: str) -> cron.Schedule:
    try:
        return cron.parse(text)
    except cron.CronError as error:
        raise UserError(f"unparseable schedule: {text}: {error}; write five fields such as */5 * * * *") from error


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UserError(f"unknown time zone {name}; write one such as Europe/Berlin") from error
