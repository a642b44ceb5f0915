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

from argosy.errors import LimitError, ManifestError
from argosy.kube.objects.input_limits import MAX_DEPTH as MAX_RAW_JSON_DEPTH
from argosy.kube.objects.input_limits import check_depth
from argosy.kube.schema import go_scalars
from argosy.kube.schema.builtin_go_struct_fields import StructField, Type, get_named_type
from argosy.kube.schema.builtin_type_json_codec import list_always_written_fields
from argosy.kube.schema.protobuf_wire_format import BYTES, FIXED64, VARINT, read_packed_numbers, split_fields, to_signed

MAX_DEPTH = 100
MAX_MESSAGES = 250_000
_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_SECONDS = -62135596800  # k8s: Go's zero time, null in JSON

FieldLayout = Literal["one", "many", "map", "inline"]
ValueConverter = Callable[["MessageReader", Any, int], Any]
"""(reader, a field's bytes or number, nesting depth) -> the JSON value."""


class _WireField(NamedTuple):
    name: str
    layout: FieldLayout
    wire_type: int
    omit_if_empty: bool
    convert: ValueConverter
    type: Type


class MessageReader:
    """Decodes one object, and counts its nested messages to enforce MAX_MESSAGES."""

    def __init__(self) -> None:
        self.message_count = 0

    def read_message(self, type_: Type, data: bytes, depth: int) -> dict[str, Any]:
        manifest: dict[str, Any] = {}
        self.read_into(manifest, type_, data, depth)
        for name, default in list_always_written_fields(type_):
            if name not in manifest:
                manifest[name] = default
        return manifest

    def read_into(self, manifest: dict[str, Any], type_: Type, data: bytes, depth: int) -> None:
        self.message_count += 1
        if depth > MAX_DEPTH or self.message_count > MAX_MESSAGES:
            raise ManifestError("proto: the message is nested too deeply or has too many nested messages")
        wire_fields = _wire_fields(type_)
        nested_messages: dict[int, list[bytes]] = {}
        for number, wire_type, value in split_fields(data):
            wire_field = wire_fields.get(number)
            if wire_field is None:
                continue
            name, layout, expected_wire_type, omit_if_empty, convert, field_type = wire_field
            if wire_type != expected_wire_type:
                self.read_packed_list(manifest, wire_field, wire_type, value)
            elif layout == "one":
                if field_type.kind == "struct":
                    manifest.setdefault(name, None)  # reserves the field's position
                    nested_messages.setdefault(number, []).append(value)  # type: ignore[arg-type]
                    continue
                new = convert(self, value, depth + 1)
                if new or not omit_if_empty:
                    manifest[name] = new
                else:
                    manifest.pop(name, None)
            elif layout == "many":
                manifest.setdefault(name, []).append(convert(self, value, depth + 1))
            elif layout == "map":
                key, item = self.read_map_entry(convert, field_type.items(), value, depth + 1)
                manifest.setdefault(name, {})[key] = item
            else:
                self.read_into(manifest, field_type, value, depth + 1)  # type: ignore[arg-type]
        for number, values in nested_messages.items():
            self.read_merged_message(manifest, wire_fields[number], b"".join(values), depth + 1)

    def read_merged_message(self, manifest: dict[str, Any], wire_field: _WireField, data: bytes, depth: int) -> None:
        """k8s: a repeated message is merged, as if its bytes were concatenated."""
        new = wire_field.convert(self, data, depth)
        if new or not wire_field.omit_if_empty:
            manifest[wire_field.name] = new
        else:
            manifest.pop(wire_field.name, None)

    def read_packed_list(self, manifest: dict[str, Any], wire_field: _WireField, wire_type: int, value: Any) -> None:
        """Read a packed list of numbers; any other unexpected wire type is an error."""
        if wire_field.layout != "many" or wire_field.wire_type != VARINT or wire_type != BYTES:
            raise ManifestError(f"proto: wrong wireType = {wire_type} for field {wire_field.name}")
        manifest.setdefault(wire_field.name, []).extend(
            wire_field.convert(self, item, 0) for item in read_packed_numbers(value)
        )

    def read_map_entry(self, convert: ValueConverter, element: Type, data: Any, depth: int) -> tuple[str, Any]:
        key, item = "", None
        for number, wire_type, value in split_fields(data):
            if number == 1 and wire_type == BYTES:
                key = read_text(self, value, depth)
            elif number == 2 and wire_type == BYTES:
                item = convert(self, value, depth)
        if item is None:
            item = convert(self, b"", depth) if element.scalar != "bytes" else None
        return key, item


@cache
def _wire_fields(type_: Type) -> dict[int, _WireField]:
    return {field.number: _build_wire_field(field) for field in type_.declared_fields if field.number}


def _build_wire_field(field: StructField) -> _WireField:
    type_ = field.type
    if field.inline:
        return _WireField(field.name, "inline", BYTES, False, _reject_inline, type_)
    omit_if_empty = field.is_omitted_if_empty and not field.pointer
    if type_.kind == "list" and not type_.is_wrapped:
        return _WireField(
            field.name, "many", _wire_type(type_.items()), omit_if_empty, _find_converter(type_.items()), type_
        )
    if type_.kind == "map":
        return _WireField(field.name, "map", BYTES, omit_if_empty, _find_converter(type_.items()), type_)
    return _WireField(field.name, "one", _wire_type(type_), omit_if_empty, _find_converter(type_), type_)


def _wire_type(type_: Type) -> int:
    return {"int32": VARINT, "int64": VARINT, "bool": VARINT, "float64": FIXED64}.get(type_.scalar, BYTES)


def _reject_inline(reader: MessageReader, value: Any, depth: int) -> Any:
    raise AssertionError("an embedded struct is filled, not converted")


def _find_converter(type_: Type) -> ValueConverter:
    if type_.kind == "struct":
        return lambda reading, value, depth: reading.read_message(type_, value, depth)
    if type_.kind == "list":
        element = _find_converter(type_.items())
        return lambda reading, value, depth: [element(reading, item, depth) for item in _all_values(value, 1)] or None
    return _CONVERTERS[type_.scalar]


def read_text(reader: MessageReader, value: Any, depth: int) -> str:
    # k8s: Go does not validate UTF-8 here, and its JSON encoder writes the replacement character.
    return str(value, "utf-8", "replace")


def _all_values(data: bytes, number: int) -> list[Any]:
    return [
        value for field_number, wire_type, value in split_fields(data) if field_number == number and wire_type == BYTES
    ]


def _last_value(data: bytes, number: int) -> Any:
    values = _all_values(data, number)
    return values[-1] if values else None


def _read_timestamp(data: bytes) -> tuple[int, int]:
    parts = {number: value for number, wire_type, value in split_fields(data) if wire_type == VARINT}
    seconds, nanos = parts.get(1, 0), parts.get(2, 0)
    assert isinstance(seconds, int) and isinstance(nanos, int)
    return to_signed(seconds, 64), to_signed(nanos, 32)


def _read_time(reader: MessageReader, value: Any, depth: int) -> str | None:
    if not value:
        return None
    seconds, _ = _read_timestamp(value)
    return None if seconds == _ZERO_SECONDS else _format_timestamp(seconds)


def _read_micro_time(reader: MessageReader, value: Any, depth: int) -> str | None:
    if not value:
        return None
    seconds, nanos = _read_timestamp(value)
    if not 0 <= nanos < 10**9:
        raise ManifestError("proto: nanoseconds out of range")
    if seconds == _ZERO_SECONDS and nanos < 1000:
        return None
    return f"{_format_timestamp(seconds)[:-1]}.{nanos // 1000:06}Z"


def _format_timestamp(seconds: int) -> str:
    try:
        return go_scalars.format_time(_EPOCH + timedelta(seconds=seconds))
    except OverflowError:
        raise ManifestError("Time.MarshalJSON: year outside of range [0,9999]") from None


def _read_quantity(reader: MessageReader, value: Any, depth: int) -> str:
    quantity_text = _last_value(value, 1)
    return "0" if quantity_text is None else str(go_scalars.read_quantity(read_text(reader, quantity_text, depth)))


def _read_int_or_string(reader: MessageReader, value: Any, depth: int) -> int | str:
    parts = {number: item for number, _, item in split_fields(value)}
    variant, number, string_value = parts.get(1, 0), parts.get(2, 0), parts.get(3, b"")
    if variant == 1 and isinstance(string_value, bytes):
        return read_text(reader, string_value, depth)
    if variant == 0 and isinstance(number, int):
        return to_signed(number, 32)
    raise ManifestError("impossible IntOrString.Type")


def _read_raw_json(reader: MessageReader, value: Any, depth: int) -> Any:
    raw = _last_value(value, 1)
    if not raw:
        return None
    try:
        value = orjson.loads(raw)
        check_depth(value, MAX_RAW_JSON_DEPTH, "json")
    except ValueError as error:
        raise ManifestError(f"json: {error}") from None
    except LimitError as error:
        raise ManifestError(f"{error}") from None
    return value


def _read_double(reader: MessageReader, value: Any, depth: int) -> Any:
    (number,) = struct.unpack("<d", value)
    if not math.isfinite(number):
        raise ManifestError(f"json: unsupported value: {number}")
    return go_scalars.read_number(number)


def _read_duration(reader: MessageReader, value: Any, depth: int) -> str:
    parts = {number: item for number, wire_type, item in split_fields(value) if wire_type == VARINT}
    nanoseconds = parts.get(1, 0)
    assert isinstance(nanoseconds, int)
    return f"{to_signed(nanoseconds, 64) / 10**9:g}s"


def _build_schema_converter(other_number: int, schema_number: int) -> ValueConverter:
    """`other_number` is the field number of the boolean or the list, `schema_number` that of the schema."""

    def convert(reading: MessageReader, value: Any, depth: int) -> Any:
        fields = split_fields(value)
        other_values = [item for number, wire, item in fields if number == other_number]
        schema_bytes = next((item for number, wire, item in fields if number == schema_number and wire == BYTES), None)
        if other_number == 1:
            if schema_bytes is None:
                return bool(other_values and other_values[-1])
        elif other_values:
            return [
                reading.read_message(get_named_type(_SCHEMA), item, depth)
                for item in other_values
                if isinstance(item, bytes)
            ]
        return None if schema_bytes is None else reading.read_message(get_named_type(_SCHEMA), schema_bytes, depth)  # type: ignore[arg-type]

    return convert


def _read_schema_or_strings(reader: MessageReader, value: Any, depth: int) -> Any:
    if strings := _all_values(value, 2):
        return [read_text(reader, item, depth) for item in strings]
    schema_bytes = _last_value(value, 1)
    return None if schema_bytes is None else reader.read_message(get_named_type(_SCHEMA), schema_bytes, depth)


_CONVERTERS: dict[str, ValueConverter] = {
    "string": read_text,
    "bytes": lambda reading, value, depth: binascii.b2a_base64(value, newline=False).decode(),
    "int32": lambda reading, value, depth: to_signed(value, 32),
    "int64": lambda reading, value, depth: to_signed(value, 64),
    "bool": lambda reading, value, depth: value != 0,
    "float64": _read_double,
    "Time": _read_time,
    "MicroTime": _read_micro_time,
    "Duration": _read_duration,
    "Quantity": _read_quantity,
    "IntOrString": _read_int_or_string,
    "Raw": _read_raw_json,
    "SchemaOrBool": _build_schema_converter(1, 2),
    "SchemaOrArray": _build_schema_converter(2, 1),
    "SchemaOrStringArray": _read_schema_or_strings,
}
