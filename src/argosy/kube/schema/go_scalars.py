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
from argosy.kube.schema.quantity import canonicalize

ScalarReader = Callable[[Any], Any]

# k8s: Go's RFC3339 accepts any fraction, also after a comma.
_TIME_PATTERN = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)([.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_TIME_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_ZERO_TIME = "0001-01-01T00:00:00"
_BASE64_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_INTEGER_LIMITS = {"int32": 2**31, "int64": 2**63}


class JsonTypeMismatch(Exception):
    """A JSON value has the wrong type: `string` where Go expects `int32`."""

    def __init__(self, value: str, go_type: str) -> None:
        super().__init__(value, go_type)
        self.value = value
        self.go_type = go_type
        self.field = ""


def build_type_mismatch(value: Any, go_type: str) -> JsonTypeMismatch:
    return JsonTypeMismatch(json_type_name(value), go_type)


def json_type_name(value: Any) -> str:
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


def build_integer_reader(scalar: str, go_type: str) -> ScalarReader:
    limit = _INTEGER_LIMITS[scalar]

    def read(value: Any) -> Any:
        if type(value) is int and -limit <= value < limit:
            return value
        if type(value) in (int, float):
            raise JsonTypeMismatch(f"number {value}", go_type)
        raise build_type_mismatch(value, go_type)

    return read


_int32 = build_integer_reader("int32", "int32")


def build_exact_type_reader(python_type: type, go_type: str) -> ScalarReader:
    def read(value: Any) -> Any:
        if type(value) is python_type:
            return value
        raise build_type_mismatch(value, go_type)

    return read


def read_number(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    raise build_type_mismatch(value, "float64")


def read_int_or_string(value: Any) -> Any:
    return value if type(value) is str else _int32(value)


def read_quantity(value: Any) -> Any:
    if type(value) is str or (type(value) in (int, float)):
        return canonicalize(value)
    raise ManifestError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")


def read_time(value: Any) -> str | None:
    """Return RFC3339 in seconds and UTC; Go's zero time is null."""
    if type(value) is not str:
        raise build_type_mismatch(value, "string")
    match = _TIME_PATTERN.fullmatch(value)
    if match is None:
        raise _build_time_error(value, _TIME_LAYOUT)
    timestamp = _parse_timestamp(value, match[1], match[3])
    if match[2] is None and match[3] == "Z":
        return None if match[1] == _ZERO_TIME else value
    text = format_time(timestamp)
    return None if text == _ZERO_TIME + "Z" else text


def read_micro_time(value: Any) -> str | None:
    """k8s: a MicroTime has exactly six decimals."""
    if type(value) is not str:
        raise build_type_mismatch(value, "string")
    match = _TIME_PATTERN.fullmatch(value)
    if match is None or match[2] is None or len(match[2]) != 7 or match[2][0] != ".":
        raise _build_time_error(value, _MICRO_TIME_LAYOUT)
    timestamp = _parse_timestamp(value, match[1], match[3])
    if match[3] == "Z":
        return None if match[1] == _ZERO_TIME and match[2] == ".000000" else value
    return format_time(timestamp).removesuffix("Z") + match[2] + "Z"


def format_time(timestamp: datetime) -> str:
    return f"{timestamp.year:04}" + timestamp.strftime("-%m-%dT%H:%M:%SZ")


def _parse_timestamp(value: str, local: str, zone: str) -> datetime:
    try:
        timestamp = datetime.fromisoformat(local)
        if zone == "Z":
            return timestamp
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
        return timestamp.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _build_time_error(value, _TIME_LAYOUT) from None


# Part of Go's layout, the pattern of its text, and its valid range.
_TIME_LAYOUT_PARTS = (
    ("2006", r"\d{4}", ()), ("-", "-", ()), ("01", r"\d\d", (1, 12, "month")), ("-", "-", ()), ("02", r"\d\d", ()),
    ("T", "T", ()), ("15", r"\d\d", (0, 23, "hour")), (":", ":", ()), ("04", r"\d\d", (0, 59, "minute")),
    (":", ":", ()), ("05", r"\d\d", (0, 59, "second")),
)  # fmt: skip


def _build_time_error(value: str, layout: str) -> ManifestError:
    """Report like Go: the first part that does not match the layout, or the first part that is out of range."""
    fraction = (".000000", r"\.\d{6}", ()) if layout == _MICRO_TIME_LAYOUT else ("", r"([.,]\d+)?", ())
    zone = ("Z07:00", r"(Z|[+-]\d\d:\d\d)", ())
    quoted_value = _quote(value)
    remaining = value
    for layout_part, pattern, limits in (*_TIME_LAYOUT_PARTS, fraction, zone):
        match = re.match(pattern, remaining, re.ASCII)
        if match is None:
            return ManifestError(
                f'parsing time {quoted_value} as "{layout}": cannot parse {_quote(remaining)} as "{layout_part}"'
            )
        if limits and not limits[0] <= int(match[0]) <= limits[1]:
            return ManifestError(f"parsing time {quoted_value}: {limits[2]} out of range")
        if layout_part == "Z07:00" and match[0] != "Z" and int(match[0][1:3]) > 23:
            return ManifestError(f"parsing time {quoted_value}: time zone offset hour out of range")
        remaining = remaining[match.end() :]
    return ManifestError(
        f"parsing time {quoted_value}: " + (f"extra text: {_quote(remaining)}" if remaining else "day out of range")
    )


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def build_base64_reader(go_type: str) -> ScalarReader:
    def read(value: Any) -> Any:
        if type(value) is not str:
            raise build_type_mismatch(value, go_type)
        text = value.replace("\n", "").replace("\r", "")
        try:
            if len(text) % 4:
                raise ValueError
            decoded = binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            raise ManifestError(f"illegal base64 data at input byte {_find_base64_error_index(value)}") from None
        encoded = binascii.b2a_base64(decoded, newline=False).decode()
        return value if encoded == value else encoded

    return read


def _find_base64_error_index(value: str) -> int:
    """Return the byte index that Go's base64 decoder reports."""
    group_length = 0
    for index, character in enumerate(value):
        if character in "\r\n":
            continue
        if character == "=":
            if group_length < 2:
                return index
            following_indexes = [
                following_index
                for following_index in range(index + 1, len(value))
                if value[following_index] not in "\r\n"
            ]
            if group_length == 2:
                if not following_indexes:
                    return len(value)
                if value[following_indexes[0]] != "=":
                    return following_indexes[0] - 1
                following_indexes = following_indexes[1:]
            return following_indexes[0] if following_indexes else index
        if character not in _BASE64_ALPHABET:
            return index
        group_length = (group_length + 1) % 4
    return len(value) - group_length
