"""Cron schedules. In: five fields or a word such as `@daily`. Out: the next time. Never: reads a clock.

k8s: the dialect of the Go library that Argo CD and CronJobs use: lists, ranges, steps, names of months and days, `?`
for `*`; if both day of month and day of week are restricted, either is enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_PREDEFINED_SCHEDULES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of week", 0, 6, _DAYS),
)
_NUMBER: Final = re.compile(r"[0-9]{1,4}")
_MAX_LOOKAHEAD: Final = timedelta(days=366 * 5)  # k8s: the search for the next time stops after five years


class CronError(ValueError):
    """The text is not a schedule; the message names the field."""


@dataclass(frozen=True, slots=True)
class CronSchedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def next_time(self, after: datetime) -> datetime | None:
        """Return the first time after the given one, in its zone; None if there is none for years.

        It counts local time and converts it to the zone: a time that daylight saving skips never occurs, and a time
        that it
        repeats occurs once.
        """
        zone: tzinfo = after.tzinfo or UTC
        local_time = after.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=1)
        last_local_time = local_time + _MAX_LOOKAHEAD
        while local_time <= last_local_time:
            if local_time.month not in self.months:
                local_time = _next_month(local_time)
            elif not self._matches_day(local_time):
                local_time = _truncate_to_day(local_time) + timedelta(days=1)
            elif local_time.hour not in self.hours:
                local_time = local_time.replace(minute=0) + timedelta(hours=1)
            elif local_time.minute not in self.minutes:
                minute = min((candidate for candidate in self.minutes if candidate > local_time.minute), default=60)
                local_time = local_time.replace(minute=0) + timedelta(minutes=minute)
            elif _exists_in_zone(result := local_time.replace(tzinfo=zone)) and result > after:
                return result
            else:
                local_time += timedelta(minutes=1)
        return None

    def _matches_day(self, local_time: datetime) -> bool:
        by_day, by_weekday = local_time.day in self.days, (local_time.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


def parse_schedule(text: str) -> CronSchedule:
    """Parse a schedule. Raises CronError."""
    words = _PREDEFINED_SCHEDULES.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise CronError(f"invalid schedule {text!r}; write minute, hour, day of month, month and day of week")
    minutes, hours, days, months, weekdays = (
        _parse_field(word, *field_definition) for word, field_definition in zip(words, _FIELDS)
    )
    any_day, any_weekday = (words[i][0] in "*?" for i in (2, 4))
    return CronSchedule(minutes, hours, days, months, weekdays, any_day, any_weekday)


def _parse_field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        range_text, _, step = part.partition("/")
        if range_text in ("*", "?"):
            first, last = low, high
        else:
            start_text, dash, end_text = range_text.partition("-")
            first = _parse_number(start_text, name, names)
            last = _parse_number(end_text, name, names) if dash else high if step else first
        width = _parse_number(step, name, {}) if "/" in part else 1
        if not low <= first <= last <= high or width < 1:
            raise CronError(f"invalid {name} {part!r}; it must be between {low} and {high}")
        values.update(range(first, last + 1, width))
    return frozenset(values)


def _parse_number(text: str, name: str, names: dict[str, int]) -> int:
    named_value = names.get(text.lower())
    if named_value is not None:
        return named_value
    if not _NUMBER.fullmatch(text):
        raise CronError(f"invalid {name} {text!r}; write a number or a name such as mon")
    return int(text)


def _exists_in_zone(local_time: datetime) -> bool:
    """True if this local time exists in its zone."""
    round_tripped = local_time.astimezone(UTC).astimezone(local_time.tzinfo)
    return round_tripped.replace(tzinfo=None) == local_time.replace(tzinfo=None)


def _truncate_to_day(local_time: datetime) -> datetime:
    return local_time.replace(hour=0, minute=0)


def _next_month(local_time: datetime) -> datetime:
    first = _truncate_to_day(local_time).replace(day=1)
    return (
        first.replace(year=local_time.year + 1, month=1)
        if local_time.month == 12
        else first.replace(month=local_time.month + 1)
    )
