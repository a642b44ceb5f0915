"""Validates the syntax of a CronJob's schedule; does not compute when it fires."""

from __future__ import annotations

import re

_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS),
)  # fmt: skip
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION = re.compile(r"[-+]?(?:0|(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+", re.ASCII)
_EVERY = "@every "


class _Unreadable(Exception):
    pass


def problem(schedule: str) -> str:
    """Return the error of a schedule, "" if it is valid."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        return _word_problem(schedule)
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    try:
        for field, bounds in zip(fields, _FIELDS):
            for part in filter(None, field.split(",")):
                _range(part, *bounds)
    except _Unreadable as unreadable:
        return str(unreadable)
    return ""


def _word_problem(schedule: str) -> str:
    if schedule in _WORDS:
        return ""
    if schedule.startswith(_EVERY):
        text = schedule.removeprefix(_EVERY)
        if _DURATION.fullmatch(text):
            return ""
        return f'failed to parse duration {schedule}: time: invalid duration "{text}"'
    return f"unrecognized descriptor: {schedule}"


def _range(part: str, low: int, high: int, names: dict[str, int]) -> None:
    span, *steps = part.split("/")
    first, *others = span.split("-")
    if first in ("*", "?"):
        start, end = low, high
    else:
        start = _number(first, names)
        if len(others) > 1:
            raise _Unreadable(f"too many hyphens: {part}")
        end = _number(others[0], names) if others else start
    if len(steps) > 1:
        raise _Unreadable(f"too many slashes: {part}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not others:
        end = high
    if start < low:
        raise _Unreadable(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise _Unreadable(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise _Unreadable(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _Unreadable(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        raise _Unreadable(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise _Unreadable(f"negative number ({number}) not allowed: {text}")
    return number
