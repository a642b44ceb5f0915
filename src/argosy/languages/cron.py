"""Cron schedules. In: five fields, a word such as `@daily`, or `@every 1h`. Out: the next time. Never: reads a clock.

k8s: the dialect of robfig/cron, the Go library of CronJobs and of Argo CD's sync windows, with its messages: lists,
ranges, steps, names of months and days, `?` for `*`, a zone in front (`CRON_TZ=Europe/Berlin 0 22 * * *`). If neither
day of month nor day of week has a `*`, either is enough; `*/2` counts as restricted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo


class _Field(NamedTuple):
    name: str
    low: int
    high: int
    names: dict[str, int]


_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}),
    _Field("day of week", 0, 6, {name: number for number, name in enumerate(_DAY_NAMES)}),
)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY_PREFIX: Final = "@every "
_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART: Final = r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION: Final = re.compile(rf"([-+]?)(?:0|(?:{_DURATION_PART})+)", re.ASCII)
_NUMBER: Final = re.compile(r"[-+]?[0-9]{1,18}")
_MAX_DURATION_LENGTH: Final = 200  # characters; longer ones would take long to match
_MAX_DURATION_SECONDS: Final = 2**63 / 1e9  # of Go, about 292 years
_MAX_LOOKAHEAD: Final = timedelta(days=366 * 5)  # k8s: the search for the next time stops after five years


class CronError(ValueError):
    """The text is not a schedule. `reason` is the message of robfig/cron; the text also names the field."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}; {reason}" if where else reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class CronSchedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool
    zone: tzinfo | None = None  # in front of the schedule; it wins over the zone of the given time

    def next_time(self, after: datetime) -> datetime | None:
        """Return the first time after the given one, in its zone; None if there is none for years.

        It counts local time and converts it to the zone: a time that daylight saving skips never occurs, and a time
        that it repeats occurs once.
        """
        if not (self.minutes and self.hours):  # a list of nothing, such as `,`
            return None
        zone: tzinfo = self.zone or after.tzinfo or UTC
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
                return result.astimezone(after.tzinfo) if self.zone else result
            else:
                local_time += timedelta(minutes=1)
        return None

    def _matches_day(self, local_time: datetime) -> bool:
        by_day, by_weekday = local_time.day in self.days, (local_time.weekday() + 1) % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """`@every`: a fixed time after the last one, in whole seconds, at least one."""

    seconds: int

    def next_time(self, after: datetime) -> datetime | None:
        try:
            return after.replace(microsecond=0) + timedelta(seconds=self.seconds)
        except OverflowError:
            return None  # after the year 9999


def parse_schedule(text: str) -> CronSchedule | IntervalSchedule:
    """Parse a schedule. Raises CronError."""
    zone, schedule = _split_zone(text)
    return _parse_interval(schedule) if schedule.startswith(_EVERY_PREFIX) else _parse_calendar(schedule, zone)


def parse_calendar_schedule(text: str) -> CronSchedule:
    """Parse a schedule whose times depend on the calendar alone: any but `@every`. Raises CronError."""
    zone, schedule = _split_zone(text)
    return _parse_calendar(schedule, zone)


def _split_zone(text: str) -> tuple[tzinfo | None, str]:
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return None, text.strip()
    assignment, _, schedule = text.partition(" ")
    return _load_zone(assignment.partition("=")[2]), schedule.strip()


def _parse_calendar(text: str, zone: tzinfo | None) -> CronSchedule:
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise CronError(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    words = text.split()
    if len(words) != len(_FIELDS):
        raise CronError(f"expected exactly 5 fields, found {len(words)}: [{' '.join(words)}]")
    fields = [_parse_field(word, field) for word, field in zip(words, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = (values for values, _ in fields)
    return CronSchedule(minutes, hours, days, months, weekdays, fields[2][1], fields[4][1], zone)


def _load_zone(name: str) -> tzinfo:
    if name in ("", "UTC", "Local"):  # of Go's LoadLocation; servers run in UTC
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise CronError(f"provided bad location {name}: unknown time zone {name}") from error


def _parse_interval(text: str) -> IntervalSchedule:
    duration = text.removeprefix(_EVERY_PREFIX)
    match = _DURATION.fullmatch(duration) if len(duration) <= _MAX_DURATION_LENGTH else None
    parts = re.findall(_DURATION_PART, duration) if match is not None else ()
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
    if match is None or seconds > _MAX_DURATION_SECONDS:
        raise CronError(f'failed to parse duration {text}: time: invalid duration "{duration}"')
    return IntervalSchedule(max(1, int(seconds)) if match[1] != "-" else 1)


def _parse_field(text: str, field: _Field) -> tuple[frozenset[int], bool]:
    """Return the values of a field, and True if it has a `*`. k8s: empty parts of a list count for nothing."""
    values: set[int] = set()
    has_star = False
    for part in filter(None, text.split(",")):
        try:
            part_values, is_star = _parse_range(part, field)
        except CronError as error:
            raise CronError(error.reason, f"invalid {field.name} {part!r}") from None
        values.update(part_values)
        has_star = has_star or is_star
    return frozenset(values), has_star


def _parse_range(part: str, field: _Field) -> tuple[range, bool]:
    span, *steps = part.split("/")
    first, *others = span.split("-")
    is_star = first in ("*", "?")
    if is_star:
        start, end = field.low, field.high
    else:
        start = _parse_number(first, field.names)
        if len(others) > 1:
            raise CronError(f"too many hyphens: {part}")
        end = _parse_number(others[0], field.names) if others else start
    if len(steps) > 1:
        raise CronError(f"too many slashes: {part}")
    step = _parse_number(steps[0], {}) if steps else 1
    if steps and not others:
        end = field.high
    if start < field.low:
        raise CronError(f"beginning of range ({start}) below minimum ({field.low}): {part}")
    if end > field.high:
        raise CronError(f"end of range ({end}) above maximum ({field.high}): {part}")
    if start > end:
        raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {part}")
    return range(start, end + 1, step), is_star and step == 1


def _parse_number(text: str, names: dict[str, int]) -> int:
    if (named_value := names.get(text.lower())) is not None:
        return named_value
    if not _NUMBER.fullmatch(text):
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if (number := int(text)) < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number


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
