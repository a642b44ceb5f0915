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
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp

MISSED_TIMES_WARNING_THRESHOLD: Final = 100  # k8s: more missed start times than this cause a warning
MAX_COUNTED_MISSED_TIMES: Final = 10_000


class DueTimes(NamedTuple):
    last_missed: datetime | None  # the latest scheduled time that was not started; None: none is due
    missed_count: int
    next_time: datetime | None


def compute_due_times(cron_job: Manifest, now: datetime) -> DueTimes:
    """Compute the missed times and the next time. Raises UserError if the schedule or the time zone is invalid."""
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    schedule, zone = _parse_schedule(str(spec["schedule"])), _load_time_zone(str(spec.get("timeZone") or "UTC"))
    since = parse_timestamp(status.get("lastScheduleTime") or cron_job["metadata"]["creationTimestamp"])
    if (deadline := spec.get("startingDeadlineSeconds")) is not None:
        since = max(since, now - timedelta(seconds=float(deadline)))
    last_missed, missed_count = None, 0
    scheduled_time = schedule.next_time(since.astimezone(zone))
    while scheduled_time is not None and scheduled_time <= now:
        last_missed, missed_count = scheduled_time, missed_count + 1
        if missed_count > MAX_COUNTED_MISSED_TIMES:  # too many to count one by one: skip ahead to the last day
            since = max(since, now - timedelta(days=1))
            scheduled_time = schedule.next_time(max(scheduled_time, since.astimezone(zone)))
            continue
        scheduled_time = schedule.next_time(scheduled_time)
    return DueTimes(last_missed, missed_count, scheduled_time)


def _parse_schedule(text: str) -> cron.CronSchedule | cron.IntervalSchedule:
    try:
        return cron.parse_schedule(text)
    except cron.CronError as error:
        raise UserError(f"unparseable schedule: {text}: {error}; write five fields such as */5 * * * *") from error


def _load_time_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UserError(f"unknown time zone {name}; write one such as Europe/Berlin") from error
