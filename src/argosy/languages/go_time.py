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
UNIT_NANOSECONDS: Final = {
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
_LAYOUT_PART: Final = re.compile(
    r"January|Jan|Monday|Mon|MST|2006|Z07:00|Z0700|-07:00|-0700|-07|01|02|03|04|05|06|002|15|PM|pm|_2"
    r"|[.,]0+(?!\d)|[.,]9+(?!\d)|1|2|3|4|5"
)
_NANOSECONDS_BY_SUFFIX: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_RFC3339: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")
_MAX_DURATION_NANOSECONDS: Final = (1 << 63) - 1


@dataclass(frozen=True, order=True)
class GoDuration:
    nanoseconds: int

    def __str__(self) -> str:
        return format_duration(self.nanoseconds)


@dataclass(frozen=True, order=True)
class GoTime:
    moment: datetime

    def __str__(self) -> str:
        return format_time(self.moment, "2006-01-02 15:04:05.999999999 -0700 MST")


def parse_time(text: Any) -> GoTime:
    match = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise UserError(f"invalid time {str(text)[:60]!r}; write one such as 2026-01-31T12:00:00Z")
    try:
        return GoTime(datetime.fromisoformat(f"{match[1]}{(match[2] or '')[:7]}{match[3]}"))
    except (ValueError, OverflowError) as error:
        raise UserError(f"invalid time {text!r} ({error}); correct it") from error


def parse_go_duration(text: str) -> GoDuration:
    sign, magnitude = (-1, text[1:]) if text[:1] == "-" else (1, text.removeprefix("+"))
    matches = list(_DURATION_PART.finditer(magnitude)) if len(magnitude) < 100 else []
    if magnitude == "0":
        return GoDuration(0)
    if not matches or "".join(match[0] for match in matches) != magnitude:
        raise UserError(f"invalid duration {text[:60]!r}; write one such as 1h30m")
    return GoDuration(sign * round(sum(float(match[1]) * _NANOSECONDS_BY_SUFFIX[match[2]] for match in matches)))


def format_duration(total_nanoseconds: int) -> str:
    sign, remaining = ("-" if total_nanoseconds < 0 else ""), abs(total_nanoseconds)
    if remaining == 0:
        return "0s"
    if remaining < 10**9:
        unit, size = next(
            unit_size for unit_size in (("ms", 10**6), ("µs", 10**3), ("ns", 1)) if remaining >= unit_size[1]
        )
        return f"{sign}{_format_decimal(remaining, size)}{unit}"
    minutes, seconds = divmod(remaining, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    text = f"{_format_decimal(seconds, 10**9)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    return f"{sign}{hours}h{text}" if hours else f"{sign}{text}"


def _format_decimal(value: int, size: int) -> str:
    whole, part = divmod(value, size)
    digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)


def format_time(moment: datetime, layout: str) -> str:
    return _LAYOUT_PART.sub(lambda match: _format_part(moment, match[0]), layout[:500])


def _format_part(moment: datetime, part: str) -> str:
    if part[0] in ".,":
        digits = f"{moment.microsecond:06d}000"[: len(part) - 1]
        if part[1] == "9":
            digits = digits.rstrip("0")
        return f"{part[0]}{digits}" if digits else ""
    return _PART_FORMATTERS[part](moment)


def _format_offset(moment: datetime, separator: str, *, zulu: bool = False) -> str:
    seconds = int((moment.utcoffset() or timedelta()).total_seconds())
    if zulu and not seconds:
        return "Z"
    hours, minutes = divmod(abs(seconds) // 60, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02d}{separator}{minutes:02d}"


def _format_zone(moment: datetime) -> str:
    name = moment.tzname() or "UTC"
    return name if name.isalpha() else _format_offset(moment, "")


_PART_FORMATTERS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "January": lambda moment: moment.strftime("%B"),
    "Jan": lambda moment: moment.strftime("%b"),
    "Monday": lambda moment: moment.strftime("%A"),
    "Mon": lambda moment: moment.strftime("%a"),
    "MST": _format_zone,
    "2006": lambda moment: f"{moment.year:04d}",
    "06": lambda moment: f"{moment.year % 100:02d}",
    "01": lambda moment: f"{moment.month:02d}",
    "1": lambda moment: str(moment.month),
    "02": lambda moment: f"{moment.day:02d}",
    "_2": lambda moment: f"{moment.day:2d}",
    "2": lambda moment: str(moment.day),
    "002": lambda moment: f"{moment.timetuple().tm_yday:03d}",
    "15": lambda moment: f"{moment.hour:02d}",
    "03": lambda moment: f"{moment.hour % 12 or 12:02d}",
    "3": lambda moment: str(moment.hour % 12 or 12),
    "04": lambda moment: f"{moment.minute:02d}",
    "4": lambda moment: str(moment.minute),
    "05": lambda moment: f"{moment.second:02d}",
    "5": lambda moment: str(moment.second),
    "PM": lambda moment: "AM" if moment.hour < 12 else "PM",
    "pm": lambda moment: "am" if moment.hour < 12 else "pm",
    "Z07:00": lambda moment: _format_offset(moment, ":", zulu=True),
    "Z0700": lambda moment: _format_offset(moment, "", zulu=True),
    "-07:00": lambda moment: _format_offset(moment, ":"),
    "-0700": lambda moment: _format_offset(moment, ""),
    "-07": lambda moment: _format_offset(moment, ":")[:3],
}


def add_duration(time: GoTime, duration: Any) -> GoTime:
    try:
        return GoTime(time.moment + timedelta(microseconds=to_nanoseconds(duration) / 1000))
    except OverflowError as error:
        raise UserError("the time is out of range; add less") from error


def subtract_times(end: GoTime, start: Any) -> GoDuration:
    if not isinstance(start, GoTime):
        raise UserError("Sub needs a time; parse it with time.Parse")
    difference = end.moment - start.moment
    total_nanoseconds = (difference.days * 86_400 + difference.seconds) * 10**9 + difference.microseconds * 1000
    return GoDuration(max(-_MAX_DURATION_NANOSECONDS, min(_MAX_DURATION_NANOSECONDS, total_nanoseconds)))


def to_nanoseconds(value: Any) -> int:
    if isinstance(value, GoDuration):
        return value.nanoseconds
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MAX_DURATION_NANOSECONDS:
        return int(value)
    raise UserError(f"invalid duration {str(value)[:60]!r}; write one such as 5 * time.Minute")


def convert_to_zone(time: GoTime, name: str) -> GoTime:
    try:
        return GoTime(time.moment.astimezone(ZoneInfo(name) if name not in ("", "Local") else UTC))
    except Exception as error:  # an unknown zone may raise any error of the file system
        raise UserError(f"unknown time zone {name[:60]!r}; write one such as Europe/Vienna") from error


def time_from_unix(seconds: float) -> GoTime:
    try:
        return GoTime(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError) as error:
        raise UserError("the time is out of range; it counts seconds since 1970") from error


def _build_unit_getter(size: int) -> Callable[[GoDuration], float]:
    return lambda duration: duration.nanoseconds / size


METHODS: Final[Mapping[type, Mapping[str, Callable[..., Any]]]] = {
    GoTime: {
        "Sub": subtract_times,
        "Add": add_duration,
        "Format": lambda time, layout: format_time(time.moment, str(layout)),
        "After": lambda time, other: time.moment > _require_time(other).moment,
        "Before": lambda time, other: time.moment < _require_time(other).moment,
        "Equal": lambda time, other: time.moment == _require_time(other).moment,
        "Unix": lambda time: int(time.moment.timestamp()),
        "UnixMilli": lambda time: int(time.moment.timestamp() * 1000),
        "UTC": lambda time: GoTime(time.moment.astimezone(UTC)),
        "Local": lambda time: GoTime(time.moment.astimezone(UTC)),  # argo: the controller's Pod has no other zone
        "Year": lambda time: time.moment.year,
        "Month": lambda time: time.moment.month,
        "Day": lambda time: time.moment.day,
        "Hour": lambda time: time.moment.hour,
        "Minute": lambda time: time.moment.minute,
        "Second": lambda time: time.moment.second,
        "Weekday": lambda time: time.moment.strftime("%A"),
        "YearDay": lambda time: time.moment.timetuple().tm_yday,
        "IsZero": lambda time: time.moment == datetime(1, 1, 1, tzinfo=timezone.utc),  # noqa: UP017 - as Go says it
        "String": str,
    },
    GoDuration: {
        "Nanoseconds": lambda duration: duration.nanoseconds,
        "Microseconds": lambda duration: duration.nanoseconds // 1000,
        "Milliseconds": lambda duration: duration.nanoseconds // 1_000_000,
        "Seconds": _build_unit_getter(10**9),
        "Minutes": _build_unit_getter(60 * 10**9),
        "Hours": _build_unit_getter(3600 * 10**9),
        "String": str,
        "Abs": lambda duration: GoDuration(abs(duration.nanoseconds)),
        "Round": lambda duration, to: GoDuration(_round_to(duration.nanoseconds, to_nanoseconds(to))),
        "Truncate": lambda duration, to: GoDuration(
            duration.nanoseconds - duration.nanoseconds % to_nanoseconds(to) if to_nanoseconds(to) > 0 else 0
        ),
    },
}


def _require_time(value: Any) -> GoTime:
    if isinstance(value, GoTime):
        return value
    raise UserError("expected a time; parse it with time.Parse")


def _round_to(value: int, multiple: int) -> int:
    return value if multiple <= 0 else (value + multiple // 2) // multiple * multiple
