"""Decodes protobuf messages of built-in kinds into manifests.

In: a struct's Type and the bytes of its message. Out: the manifest as Go would write it in JSON.
Never: trusts a length, a depth or a count; broken or oversized messages raise ManifestError.
"""

from __future__ import annotations

import binascii
import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

import orjson

from argosy.errors import ManifestError
from argosy.kube.schema import go_scalars
from argosy.kube.schema.builtin_types import Field, Type, named
from argosy.kube.schema.protobuf_encoding import BYTES, FIXED64, VARINT, packed, signed, split
from argosy.kube.schema.typed_json import always

MAX_DEPTH = 100
MAX_MESSAGES = 250_000
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_SECONDS = -62135596800  # k8s: Go's zero time, null in JSON

Shape = Literal["one", "many", "map", "inline"]
Convert = Callable[["Reading", Any, int], Any]
"""(reader, a field's bytes or number, nesting depth) -> the JSON value."""


class _Entry(NamedTuple):
    name: str
    shape: Shape
    wire: int
    drops: bool
    convert: Convert
    type: Type


class Reading:
    """Decodes one object, and counts its nested messages to enforce MAX_MESSAGES."""

    def __init__(self) -> None:
        self.messages = 0

    def message(self, type_: Type, data: bytes, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        self.fill(made, type_, data, depth)
        for name, blank in always(type_):
            if name not in made:
                made[name] = blank
        return made

    def fill(self, made: dict[str, Any], type_: Type, data: bytes, depth: int) -> None:
        self.messages += 1
        if depth > MAX_DEPTH or self.messages > MAX_MESSAGES:
            raise ManifestError("proto: the message is nested too deeply or has too many nested messages")
        entries = _entries(type_)
        messages: dict[int, list[bytes]] = {}
        for number, wire, value in split(data):
            entry = entries.get(number)
            if entry is None:
                continue
            name, shape, expected, drops, convert, field_type = entry
            if wire != expected:
                self.unusual(made, entry, wire, value)
            elif shape == "one":
                if field_type.kind == "struct":
                    made.setdefault(name, None)  # reserves the field's position
                    messages.setdefault(number, []).append(value)  # type: ignore[arg-type]
                    continue
                new = convert(self, value, depth + 1)
                if new or not drops:
                    made[name] = new
                else:
                    made.pop(name, None)
            elif shape == "many":
                made.setdefault(name, []).append(convert(self, value, depth + 1))
            elif shape == "map":
                key, item = self.pair(convert, field_type.items(), value, depth + 1)
                made.setdefault(name, {})[key] = item
            else:
                self.fill(made, field_type, value, depth + 1)  # type: ignore[arg-type]
        for number, values in messages.items():
            self.merge(made, entries[number], b"".join(values), depth + 1)

    def merge(self, made: dict[str, Any], entry: _Entry, data: bytes, depth: int) -> None:
        """k8s: a repeated message is merged, as if its bytes were concatenated."""
        new = entry.convert(self, data, depth)
        if new or not entry.drops:
            made[entry.name] = new
        else:
            made.pop(entry.name, None)

    def unusual(self, made: dict[str, Any], entry: _Entry, wire: int, value: Any) -> None:
        """Read a packed list of numbers; any other unexpected wire type is an error."""
        if entry.shape != "many" or entry.wire != VARINT or wire != BYTES:
            raise ManifestError(f"proto: wrong wireType = {wire} for field {entry.name}")
        made.setdefault(entry.name, []).extend(entry.convert(self, item, 0) for item in packed(value))

    def pair(self, convert: Convert, element: Type, data: Any, depth: int) -> tuple[str, Any]:
        key, item = "", None
        for number, wire, value in split(data):
            if number == 1 and wire == BYTES:
                key = text(self, value, depth)
            elif number == 2 and wire == BYTES:
                item = convert(self, value, depth)
        if item is None:
            item = convert(self, b"", depth) if element.scalar != "bytes" else None
        return key, item


@cache
def _entries(type_: Type) -> dict[int, _Entry]:
    return {field.number: _entry(field) for field in type_.declared if field.number}


def _entry(field: Field) -> _Entry:
    type_ = field.type
    if field.inline:
        return _Entry(field.name, "inline", BYTES, False, _no_convert, type_)
    drops = field.droppable and not field.pointer
    if type_.kind == "list" and not type_.wrapped:
        return _Entry(field.name, "many", _wire(type_.items()), drops, _convert(type_.items()), type_)
    if type_.kind == "map":
        return _Entry(field.name, "map", BYTES, drops, _convert(type_.items()), type_)
    return _Entry(field.name, "one", _wire(type_), drops, _convert(type_), type_)


def _wire(type_: Type) -> int:
    return {"int32": VARINT, "int64": VARINT, "bool": VARINT, "float64": FIXED64}.get(type_.scalar, BYTES)


def _no_convert(reading: Reading, value: Any, depth: int) -> Any:
    raise AssertionError("an embedded struct is filled, not converted")


def _convert(type_: Type) -> Convert:
    if type_.kind == "struct":
        return lambda reading, value, depth: reading.message(type_, value, depth)
    if type_.kind == "list":
        element = _convert(type_.items())
        return lambda reading, value, depth: [element(reading, item, depth) for item in _all(value, 1)] or None
    return _CONVERT[type_.scalar]


def text(reading: Reading, value: Any, depth: int) -> str:
    # k8s: Go does not validate UTF-8 here, and its JSON encoder writes the replacement character.
    return str(value, "utf-8", "replace")


def _all(data: bytes, number: int) -> list[Any]:
    return [value for found, wire, value in split(data) if found == number and wire == BYTES]


def _last(data: bytes, number: int) -> Any:
    found = _all(data, number)
    return found[-1] if found else None


def _seconds(data: bytes) -> tuple[int, int]:
    parts = {number: value for number, wire, value in split(data) if wire == VARINT}
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    assert isinstance(seconds, int) and isinstance(nanos, int)
    return signed(seconds, 64), signed(nanos, 32)


def _time(reading: Reading, value: Any, depth: int) -> str | None:
    if not value:
        return None
    seconds, _ = _seconds(value)
    return None if seconds == _ZERO_SECONDS else _moment(seconds)


def _micro_time(reading: Reading, value: Any, depth: int) -> str | None:
    if not value:
        return None
    seconds, nanos = _seconds(value)
    if not 0 <= nanos < 10**9:
        raise ManifestError("proto: nanoseconds out of range")
    if seconds == _ZERO_SECONDS and nanos < 1000:
        return None
    return f"{_moment(seconds)[:-1]}.{nanos // 1000:06}Z"


def _moment(seconds: int) -> str:
    try:
        return go_scalars.format_time(_EPOCH + timedelta(seconds=seconds))
    except OverflowError:
        raise ManifestError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _quantity(reading: Reading, value: Any, depth: int) -> str:
    written = _last(value, 1)
    return "0" if written is None else str(go_scalars.quantity(text(reading, written, depth)))


def _int_or_string(reading: Reading, value: Any, depth: int) -> int | str:
    parts = {number: found for number, _, found in split(value)}
    chosen, number, words = parts.get(1, 0), parts.get(2, 0), parts.get(3, b"")
    if chosen == 1 and isinstance(words, bytes):
        return text(reading, words, depth)
    if chosen == 0 and isinstance(number, int):
        return signed(number, 32)
    raise ManifestError("impossible IntOrString.Type")


def _raw(reading: Reading, value: Any, depth: int) -> Any:
    raw = _last(value, 1)
    if not raw:
        return None
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise ManifestError(f"json: {error}") from None


def _double(reading: Reading, value: Any, depth: int) -> Any:
    (number,) = struct.unpack("<d", value)
    if not math.isfinite(number):
        raise ManifestError(f"json: unsupported value: {number}")
    return go_scalars.number(number)


def _duration(reading: Reading, value: Any, depth: int) -> str:
    parts = {number: found for number, wire, found in split(value) if wire == VARINT}
    nanoseconds = parts.get(1, 0)
    assert isinstance(nanoseconds, int)
    return f"{signed(nanoseconds, 64) / 10**9:g}s"


def _schema_or(other: int, schema: int) -> Convert:
    """`other_number` is the field number of the boolean or the list, `schema_number` that of the schema."""

    def convert(reading: Reading, value: Any, depth: int) -> Any:
        found = split(value)
        listed = [item for number, wire, item in found if number == other]
        inner = next((item for number, wire, item in found if number == schema and wire == BYTES), None)
        if other == 1:
            if inner is None:
                return bool(listed and listed[-1])
        elif listed:
            return [reading.message(named(_SCHEMA), item, depth) for item in listed if isinstance(item, bytes)]
        return None if inner is None else reading.message(named(_SCHEMA), inner, depth)  # type: ignore[arg-type]

    return convert


def _schema_or_strings(reading: Reading, value: Any, depth: int) -> Any:
    if strings := _all(value, 2):
        return [text(reading, item, depth) for item in strings]
    inner = _last(value, 1)
    return None if inner is None else reading.message(named(_SCHEMA), inner, depth)


_CONVERT: dict[str, Convert] = {
    "string": text,
    "bytes": lambda reading, value, depth: binascii.b2a_base64(value, newline=False).decode(),
    "int32": lambda reading, value, depth: signed(value, 32),
    "int64": lambda reading, value, depth: signed(value, 64),
    "bool": lambda reading, value, depth: value != 0,
    "float64": _double,
    "Time": _time,
    "MicroTime": _micro_time,
    "Duration": _duration,
    "Quantity": _quantity,
    "IntOrString": _int_or_string,
    "Raw": _raw,
    "SchemaOrBool": _schema_or(1, 2),
    "SchemaOrArray": _schema_or(2, 1),
    "SchemaOrStringArray": _schema_or_strings,
}
