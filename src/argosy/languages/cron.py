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
_WORDS: Final = {
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
_DIGITS: Final = re.compile(r"[0-9]{1,4}")
_FURTHEST: Final = timedelta(days=366 * 5)  # k8s: the search for the next time stops after five years


class CronError(ValueError):
    """The text is not a schedule; the message names the field."""


@dataclass(frozen=True, slots=True)
class Schedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def next(self, after: datetime) -> datetime | None:
        """Return the first time after the given one, in its zone; None if there is none for years.

        It counts local time and converts it to the zone: a time that daylight saving skips never occurs, and a time
        that it
        repeats occurs once.
        """
        zone: tzinfo = after.tzinfo or UTC
        wall = after.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0) + timedelta(minutes=1)
        last = wall + _FURTHEST
        while wall <= last:
            if wall.month not in self.months:
                wall = _next_month(wall)
            elif not self._is_day(wall):
                wall = _midnight(wall) + timedelta(days=1)
            elif wall.hour not in self.hours:
                wall = wall.replace(minute=0) + timedelta(hours=1)
            elif wall.minute not in self.minutes:
                minute = min((each for each in self.minutes if each > wall.minute), default=60)
                wall = wall.replace(minute=0) + timedelta(minutes=minute)
            elif _exists(found := wall.replace(tzinfo=zone)) and found > after:
                return found
            else:
                wall += timedelta(minutes=1)
        return None

    def _is_day(self, wall: datetime) -> bool:
        by_day, by_weekday = wall.day in self.days, (wall.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


def parse(text: str) -> Schedule:
    """Parse a schedule. Raises CronError."""
    words = _WORDS.get(text.strip().lower(), text).split()
    if len(words) != len(_FIELDS):
        raise CronError(f"invalid schedule {text!r}; write minute, hour, day of month, month and day of week")
    minutes, hours, days, months, weekdays = (_field(word, *about) for word, about in zip(words, _FIELDS))
    any_day, any_weekday = (words[place][0] in "*?" for place in (2, 4))
    return Schedule(minutes, hours, days, months, weekdays, any_day, any_weekday)


def _field(text: str, name: str, low: int, high: int, names: dict[str, int]) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        spread, _, step = part.partition("/")
        if spread in ("*", "?"):
            first, last = low, high
        else:
            begin, dash, end = spread.partition("-")
            first = _number(begin, name, names)
            last = _number(end, name, names) if dash else high if step else first
        width = _number(step, name, {}) if "/" in part else 1
        if not low <= first <= last <= high or width < 1:
            raise CronError(f"invalid {name} {part!r}; it must be between {low} and {high}")
        found.update(range(first, last + 1, width))
    return frozenset(found)


def _number(text: str, name: str, names: dict[str, int]) -> int:
    known = names.get(text.lower())
    if known is not None:
        return known
    if not _DIGITS.fullmatch(text):
        raise CronError(f"invalid {name} {text!r}; write a number or a name such as mon")
    return int(text)


def _exists(moment: datetime) -> bool:
    """True if this local time exists in its zone."""
    shown = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return shown.replace(tzinfo=None) == moment.replace(tzinfo=None)


def _midnight(wall: datetime) -> datetime:
    return wall.replace(hour=0, minute=0)


def _next_month(wall: datetime) -> datetime:
    first = _midnight(wall).replace(day=1)
    return first.replace(year=wall.year + 1, month=1) if wall.month == 12 else first.replace(month=wall.month + 1)
