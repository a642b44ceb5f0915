"""Go's times and durations, for the languages of notifications.

In: RFC 3339 text, Go layouts. Out: values with Go's methods, and text. Never: reads a clock: the caller passes the
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final
from zoneinfo import ZoneInfo

from argosy.errors import UserError

NANOSECOND: Final = 1
UNITS: Final = {
    "Nanosecond": 1,
    "Microsecond": 1_000,
    "Millisecond": 1_000_000,
    "Second": 1_000_000_000,
    "Minute": 60_000_000_000,
    "Hour": 3_600_000_000_000,
}
LAYOUTS: Final = {
    "Layout": "01/02 03:04:05PM '06 -0700",
    "ANSIC": "Mon Jan _2 15:04:05 2006",
    "UnixDate": "Mon Jan _2 15:04:05 MST 2006",
    "RubyDate": "Mon Jan 02 15:04:05 -0700 2006",
    "RFC822": "02 Jan 06 15:04 MST",
    "RFC822Z": "02 Jan 06 15:04 -0700",
    "RFC850": "Monday, 02-Jan-06 15:04:05 MST",
    "RFC1123": "Mon, 02 Jan 2006 15:04:05 MST",
    "RFC1123Z": "Mon, 02 Jan 2006 15:04:05 -0700",
    "RFC3339": "2006-01-02T15:04:05Z07:00",
    "RFC3339Nano": "2006-01-02T15:04:05.999999999Z07:00",
    "Kitchen": "3:04PM",
    "Stamp": "Jan _2 15:04:05",
    "StampMilli": "Jan _2 15:04:05.000",
    "StampMicro": "Jan _2 15:04:05.000000",
    "StampNano": "Jan _2 15:04:05.000000000",
}
_PART: Final = re.compile(
    r"January|Jan|Monday|Mon|MST|2006|Z07:00|Z0700|-07:00|-0700|-07|01|02|03|04|05|06|002|15|PM|pm|_2"
    r"|[.,]0+(?!\d)|[.,]9+(?!\d)|1|2|3|4|5"
)
_UNIT_OF: Final = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_DURATION: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_LONGEST: Final = (1 << 63) - 1


@dataclass(frozen=True, order=True)
class Duration:
    nanoseconds: int

    def __str__(self) -> str:
        return duration_text(self.nanoseconds)


@dataclass(frozen=True, order=True)
class Time:
    at: datetime

    def __str__(self) -> str:
        return formatted(self.at, "2006-01-02 15:04:05.999999999 -0700 MST")


def parse_time(text: Any) -> Time:
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise UserError(f"invalid time {str(text)[:60]!r}; write one such as 2026-01-31T12:00:00Z")
    try:
        return Time(datetime.fromisoformat(f"{found[1]}{(found[2] or '')[:7]}{found[3]}"))
    except (ValueError, OverflowError) as error:
        raise UserError(f"invalid time {text!r} ({error}); correct it") from error


def parse_duration(text: str) -> Duration:
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    found = list(_DURATION.finditer(rest)) if len(rest) < 100 else []
    if rest == "0":
        return Duration(0)
    if not found or "".join(each[0] for each in found) != rest:
        raise UserError(f"invalid duration {text[:60]!r}; write one such as 1h30m")
    return Duration(sign * round(sum(float(each[1]) * _UNIT_OF[each[2]] for each in found)))


def duration_text(total: int) -> str:
    sign, rest = ("-" if total < 0 else ""), abs(total)
    if rest == 0:
        return "0s"
    if rest < 10**9:
        unit, size = next(each for each in (("ms", 10**6), ("µs", 10**3), ("ns", 1)) if rest >= each[1])
        return f"{sign}{_decimal(rest, size)}{unit}"
    minutes, seconds = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _decimal(value: int, size: int) -> str:
    whole, part = divmod(value, size)
    digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)


def formatted(at: datetime, layout: str) -> str:
    return _PART.sub(lambda found: _part(at, found[0]), layout[:500])


def _part(at: datetime, part: str) -> str:
    if part[0] in ".,":
        digits = f"{at.microsecond:06d}000"[: len(part) - 1]
        if part[1] == "9":
            digits = digits.rstrip("0")
        return f"{part[0]}{digits}" if digits else ""
    return _PARTS[part](at)


def _offset(at: datetime, separator: str, *, zulu: bool = False) -> str:
    seconds = int((at.utcoffset() or timedelta()).total_seconds())
    if zulu and not seconds:
        return "Z"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02d}{separator}{minutes:02d}"


def _zone(at: datetime) -> str:
    name = at.tzname() or "UTC"
    return name if name.isalpha() else _offset(at, "")


_PARTS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "January": lambda at: at.strftime("%B"),
    "Jan": lambda at: at.strftime("%b"),
    "Monday": lambda at: at.strftime("%A"),
    "Mon": lambda at: at.strftime("%a"),
    "MST": _zone,
    "2006": lambda at: f"{at.year:04d}",
    "06": lambda at: f"{at.year % 100:02d}",
    "01": lambda at: f"{at.month:02d}",
    "1": lambda at: str(at.month),
    "02": lambda at: f"{at.day:02d}",
    "_2": lambda at: f"{at.day:2d}",
    "2": lambda at: str(at.day),
    "002": lambda at: f"{at.timetuple().tm_yday:03d}",
    "15": lambda at: f"{at.hour:02d}",
    "03": lambda at: f"{at.hour % 12 or 12:02d}",
    "3": lambda at: str(at.hour % 12 or 12),
    "04": lambda at: f"{at.minute:02d}",
    "4": lambda at: str(at.minute),
    "05": lambda at: f"{at.second:02d}",
    "5": lambda at: str(at.second),
    "PM": lambda at: "AM" if at.hour < 12 else "PM",
    "pm": lambda at: "am" if at.hour < 12 else "pm",
    "Z07:00": lambda at: _offset(at, ":", zulu=True),
    "Z0700": lambda at: _offset(at, "", zulu=True),
    "-07:00": lambda at: _offset(at, ":"),
    "-0700": lambda at: _offset(at, ""),
    "-07": lambda at: _offset(at, ":")[:3],
}


def add(time: Time, duration: Any) -> Time:
    try:
        return Time(time.at + timedelta(microseconds=nanoseconds(duration) / 1000))
    except OverflowError as error:
        raise UserError("the time is out of range; add less") from error


def subtract(one: Time, other: Any) -> Duration:
    if not isinstance(other, Time):
        raise UserError("Sub needs a time; parse it with time.Parse")
    gone = one.at - other.at
    total = (gone.days * 86_400 + gone.seconds) * 10**9 + gone.microseconds * 1000
    return Duration(max(-_LONGEST, min(_LONGEST, total)))


def nanoseconds(value: Any) -> int:
    if isinstance(value, Duration):
        return value.nanoseconds
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LONGEST:
        return int(value)
    raise UserError(f"invalid duration {str(value)[:60]!r}; write one such as 5 * time.Minute")


def zoned(time: Time, name: str) -> Time:
    try:
        return Time(time.at.astimezone(ZoneInfo(name) if name not in ("", "Local") else UTC))
    except Exception as error:  # an unknown zone may raise any error of the file system
        raise UserError(f"unknown time zone {name[:60]!r}; write one such as Europe/Vienna") from error


def unix(seconds: float) -> Time:
    try:
        return Time(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError) as error:
        raise UserError("the time is out of range; it counts seconds since 1970") from error


def _unit(size: int) -> Callable[[Duration], float]:
    return lambda duration: duration.nanoseconds / size


METHODS: Final[Mapping[type, Mapping[str, Callable[..., Any]]]] = {
    Time: {
        "Sub": subtract,
        "Add": add,
        "Format": lambda time, layout: formatted(time.at, str(layout)),
        "After": lambda time, other: time.at > _time(other).at,
        "Before": lambda time, other: time.at < _time(other).at,
        "Equal": lambda time, other: time.at == _time(other).at,
        "Unix": lambda time: int(time.at.timestamp()),
        "UnixMilli": lambda time: int(time.at.timestamp() * 1000),
        "UTC": lambda time: Time(time.at.astimezone(UTC)),
        "Local": lambda time: Time(time.at.astimezone(UTC)),  # argo: the controller's Pod has no other zone
        "Year": lambda time: time.at.year,
        "Month": lambda time: time.at.month,
        "Day": lambda time: time.at.day,
        "Hour": lambda time: time.at.hour,
        "Minute": lambda time: time.at.minute,
        "Second": lambda time: time.at.second,
        "Weekday": lambda time: time.at.strftime("%A"),
        "YearDay": lambda time: time.at.timetuple().tm_yday,
        "IsZero": lambda time: time.at == datetime(1, 1, 1, tzinfo=timezone.utc),  # noqa: UP017 - as Go says it
        "String": str,
    },
    Duration: {
        "Nanoseconds": lambda duration: duration.nanoseconds,
        "Microseconds": lambda duration: duration.nanoseconds // 1000,
        "Milliseconds": lambda duration: duration.nanoseconds // 1_000_000,
        "Seconds": _unit(10**9),
        "Minutes": _unit(60 * 10**9),
        "Hours": _unit(3600 * 10**9),
        "String": str,
        "Abs": lambda duration: Duration(abs(duration.nanoseconds)),
        "Round": lambda duration, to: Duration(_rounded(duration.nanoseconds, nanoseconds(to))),
        "Truncate": lambda duration, to: Duration(
            duration.nanoseconds - duration.nanoseconds % nanoseconds(to) if nanoseconds(to) > 0 else 0
        ),
    },
}


def _time(value: Any) -> Time:
    if isinstance(value, Time):
        return value
    raise UserError("expected a time; parse it with time.Parse")


def _rounded(value: int, to: int) -> int:
    return value if to <= 0 else (value + to // 2) // to * to
