"""Validates the syntax of a CronJob's schedule; does not compute when it fires."""

from __future__ import annotations

import re

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELD_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS),
)  # fmt: skip
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION_PATTERN = re.compile(r"[-+]?(?:0|(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_EVERY_PREFIX = "@every "


class _ScheduleError(Exception):
    pass


def find_schedule_error(schedule: str) -> str:
    """Return the error of a schedule, "" if it is valid."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        return _find_descriptor_error(schedule)
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, bounds in zip(fields, _FIELD_BOUNDS):
            for part in filter(None, field.split(",")):
                _check_range(part, *bounds)
    except _ScheduleError as error:
        return str(error)
    return ""


def _find_descriptor_error(schedule: str) -> str:
    if schedule in _DESCRIPTORS:
        return ""
    if schedule.startswith(_EVERY_PREFIX):
        text = schedule.removeprefix(_EVERY_PREFIX)
        if _DURATION_PATTERN.fullmatch(text):
            return ""
        return f'failed to parse duration {schedule}: time: invalid duration "{text}"'
    return f"unrecognized descriptor: {schedule}"


def _check_range(part: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = part.split("/")
    first, *others = span.split("-")
    if first in ("*", "?"):
        start, end = low, high
    else:
        start = _parse_number(first, names)
        if len(others) > 1:
            raise _ScheduleError(f"too many hyphens: {part}")
        end = _parse_number(others[0], names) if others else start
    if len(steps) > 1:
        raise _ScheduleError(f"too many slashes: {part}")
    step = _parse_number(steps[0], {}) if steps else 1
    if steps and not others:
        end = high
    if start < low:
        raise _ScheduleError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise _ScheduleError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise _ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _ScheduleError(f"step of range should be a positive number: {part}")


def _parse_number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        raise _ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise _ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
