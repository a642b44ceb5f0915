"""Reads scalars as Go's JSON decoder does and returns them as Go's encoder writes them.

In: a non-null JSON value. Out: the value in its canonical form. Never: accepts a value that Go rejects: it raises
ManifestError with Go's message, or JsonTypeMismatch, to which the decoder of the struct adds the field's name.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema.quantity import canonical

Reader = Callable[[Any], Any]

# k8s: Go's RFC3339 accepts any fraction, also after a comma.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_ZERO_TIME = "0001-01-01T00:00:00"
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_LIMITS = {"int32": 2**31, "int64": 2**63}


class Mismatch(Exception):
    """A JSON value has the wrong type: `string` where Go expects `int32`."""

    def __init__(self, value: str, go_type: str) -> None:
        super().__init__(value, go_type)
        self.value = value
        self.go_type = go_type
        self.field = ""


def mismatch(value: Any, go_type: str) -> Mismatch:
    return Mismatch(json_type(value), go_type)


def json_type(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
    return "number"


def integer(scalar: str, go_type: str) -> Reader:
    limit = _LIMITS[scalar]

    def read(value: Any) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        if type(value) in (int, float):
            raise Mismatch(f"number {value}", go_type)
        raise mismatch(value, go_type)

    return read


_int32 = integer("int32", "int32")


def exactly(python_type: type, go_type: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is python_type:
            return value
        raise mismatch(value, go_type)

    return read


def number(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    raise mismatch(value, "float64")


def int_or_string(value: Any) -> Any:
    return value if type(value) is str else _int32(value)


def quantity(value: Any) -> Any:
    if type(value) is str or (type(value) in (int, float)):
        return canonical(value)
    raise ManifestError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")


def time(value: Any) -> str | None:
    """Return RFC3339 in seconds and UTC; Go's zero time is null."""
    if type(value) is not str:
        raise mismatch(value, "string")
    found = _TIME.fullmatch(value)
    if found is None:
        raise _bad_time(value, _LAYOUT)
    moment = _moment(value, found[1], found[3])
    if found[2] is None and found[3] == "Z":
        return None if found[1] == _ZERO_TIME else value
    text = format_time(moment)
    return None if text == _ZERO_TIME + "Z" else text


def micro_time(value: Any) -> str | None:
    """k8s: a MicroTime has exactly six decimals."""
    if type(value) is not str:
        raise mismatch(value, "string")
    found = _TIME.fullmatch(value)
    if found is None or found[2] is None or len(found[2]) != 7 or found[2][0] != ".":
        raise _bad_time(value, _MICRO_LAYOUT)
    moment = _moment(value, found[1], found[3])
    if found[3] == "Z":
        return None if found[1] == _ZERO_TIME and found[2] == ".000000" else value
    return format_time(moment).removesuffix("Z") + found[2] + "Z"


def format_time(moment: datetime) -> str:
    return f"{moment.year:04}" + moment.strftime("-%m-%dT%H:%M:%SZ")


def _moment(value: str, local: str, zone: str) -> datetime:
    try:
        moment = datetime.fromisoformat(local)
        if zone == "Z":
            return moment
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        return moment.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _bad_time(value, _LAYOUT) from None


# Part of Go's layout, the pattern of its text, and its valid range.
_PARTS = (
    ("2006", r"\d{4}", ()), ("-", "-", ()), ("01", r"\d\d", (1, 12, "month")), ("-", "-", ()), ("02", r"\d\d", ()),
    ("T", "T", ()), ("15", r"\d\d", (0, 23, "hour")), (":", ":", ()), ("04", r"\d\d", (0, 59, "minute")),
    (":", ":", ()), ("05", r"\d\d", (0, 59, "second")),
)  # fmt: skip


def _bad_time(value: str, layout: str) -> ManifestError:
    """Report like Go: the first part that does not match the layout, or the first part that is out of range."""
    fraction = (".000000", r"\.\d{6}", ()) if layout == _MICRO_LAYOUT else ("", r"([.,]\d+)?", ())
    zone = ("Z07:00", r"(Z|[+-]\d\d:\d\d)", ())
    shown = _quoted(value)
    rest = value
    for wanted, pattern, limits in (*_PARTS, fraction, zone):
        found = re.match(pattern, rest, re.ASCII)
        if found is None:
            return ManifestError(f'parsing time {shown} as "{layout}": cannot parse {_quoted(rest)} as "{wanted}"')
        if limits and not limits[0] <= int(found[0]) <= limits[1]:
            return ManifestError(f"parsing time {shown}: {limits[2]} out of range")
        if wanted == "Z07:00" and found[0] != "Z" and int(found[0][1:3]) > 23:
            return ManifestError(f"parsing time {shown}: time zone offset hour out of range")
        rest = rest[found.end() :]
    return ManifestError(f"parsing time {shown}: " + (f"extra text: {_quoted(rest)}" if rest else "day out of range"))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def base64(go_type: str) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not str:
            raise mismatch(value, go_type)
        text = value.replace("\n", "").replace("\r", "")
        try:
            if len(text) % 4:
                raise ValueError
            plain = binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            raise ManifestError(f"illegal base64 data at input byte {_bad_byte(value)}") from None
        written = binascii.b2a_base64(plain, newline=False).decode()
        return value if written == value else written

    return read


def _bad_byte(value: str) -> int:
    """Return the byte index that Go's base64 decoder reports."""
    filled = 0
    for at, letter in enumerate(value):
        if letter in "\r\n":
            continue
        if letter == "=":
            if filled < 2:
                return at
            rest = [index for index in range(at + 1, len(value)) if value[index] not in "\r\n"]
            if filled == 2:
                if not rest:
                    return len(value)
                if value[rest[0]] != "=":
                    return rest[0] - 1
                rest = rest[1:]
            return rest[0] if rest else at
        if letter not in _ALPHABET:
            return at
        filled = (filled + 1) % 4
    return len(value) - filled
