"""Encodes manifests of built-in kinds as protobuf messages, byte for byte as Go does.

In: a struct's Type and its value. Out: the bytes of its message. Never: checks the value; `typed_json.decode` did.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any

import orjson

from argosy.kube.schema.builtin_go_struct_fields import StructField, Type, get_named_type
from argosy.kube.schema.protobuf_wire_format import FIXED64, encode_bytes_field, encode_number_field, encode_varint

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"

FieldWriter = Callable[[Any], bytes]


def encode_message(type_: Type, value: dict[str, Any]) -> bytes:
    return b"".join([write(value) for write in _build_field_writers(type_)])


@cache
def _build_field_writers(type_: Type) -> tuple[FieldWriter, ...]:
    """Build one writer per field, in the order of field numbers; each receives the value of the whole struct."""
    fields = sorted((field for field in type_.declared_fields if field.number), key=lambda field: field.number)
    return tuple(_build_embedded_writer(field) if field.inline else _build_field_writer(field) for field in fields)


def _build_embedded_writer(field: StructField) -> FieldWriter:
    number, type_, is_optional = field.number, field.type, field.pointer

    def embedded(owner: Any) -> bytes:
        if is_optional and all(owner.get(name) is None for name in type_.fields):
            return b""  # the embedded pointer is nil
        return encode_bytes_field(number, encode_message(type_, owner))

    return embedded


def _build_field_writer(field: StructField) -> FieldWriter:
    name, number, type_ = field.name, field.number, field.type
    if type_.kind == "list" and not type_.is_wrapped:
        element = _build_value_writer(type_.items())
        return lambda owner: b"".join([element(number, item) for item in owner.get(name) or ()])
    if type_.kind == "map":
        element = _build_value_writer(type_.items())

        def pairs(owner: Any) -> bytes:
            sorted_items = sorted((owner.get(name) or {}).items())
            return b"".join(
                [
                    encode_bytes_field(number, encode_bytes_field(1, key.encode()) + element(2, item))
                    for key, item in sorted_items
                ]
            )

        return pairs
    write = _build_value_writer(type_)
    omit_if_absent = field.pointer or type_.scalar == "bytes" or type_.is_wrapped

    def one(owner: Any) -> bytes:
        item = owner.get(name)
        if item is None and omit_if_absent:
            return b""
        return write(number, item)

    return one


@cache
def _build_value_writer(type_: Type) -> Callable[[int, Any], bytes]:
    """Build a writer of (field number, value); an absent value is written as Go's zero value."""
    if type_.kind == "struct":
        return lambda number, item: encode_bytes_field(number, encode_message(type_, item or {}))
    if type_.kind == "list":
        element = _build_value_writer(type_.items())
        return lambda number, item: encode_bytes_field(number, b"".join([element(1, child) for child in item or ()]))
    match type_.scalar:
        case "string":
            return lambda number, item: encode_bytes_field(number, (item or "").encode())
        case "int32" | "int64" | "bool":
            return lambda number, item: encode_number_field(number, int(item or 0))
        case "float64":
            return lambda number, item: encode_varint(number << 3 | FIXED64) + struct.pack("<d", item or 0)
        case "bytes":
            return lambda number, item: encode_bytes_field(number, binascii.a2b_base64(item or ""))
    convert = _ENCODERS[type_.scalar]
    return lambda number, item: encode_bytes_field(number, convert(item))


def _encode_time(value: Any) -> bytes:
    """k8s: seconds only; the zero nanoseconds are written too."""
    return b"" if value is None else encode_number_field(1, _seconds_since_epoch(value)) + encode_number_field(2, 0)


def _encode_micro_time(value: Any) -> bytes:
    if value is None:
        return b""
    whole, _, fraction = value.rstrip("Z").partition(".")
    return encode_number_field(1, _seconds_since_epoch(whole + "Z")) + encode_number_field(2, int(fraction or 0) * 1000)


def _seconds_since_epoch(value: str) -> int:
    timestamp = datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=UTC)
    return int((timestamp - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())


def _encode_int_or_string(value: Any) -> bytes:
    is_text = isinstance(value, str)
    return (
        encode_number_field(1, int(is_text))
        + encode_number_field(2, 0 if is_text else value or 0)
        + encode_bytes_field(3, value.encode() if is_text else b"")
    )


def _encode_raw_json(value: Any) -> bytes:
    return b"" if value is None else encode_bytes_field(1, orjson.dumps(value))


def _encode_schema(value: dict[str, Any]) -> bytes:
    return encode_message(get_named_type(_SCHEMA), value)


def _encode_schema_or_bool(value: Any) -> bytes:
    if isinstance(value, dict):
        return encode_number_field(1, 1) + encode_bytes_field(2, _encode_schema(value))
    return encode_number_field(1, int(bool(value)))


def _encode_schema_or_array(value: Any) -> bytes:
    if isinstance(value, dict):
        return encode_bytes_field(1, _encode_schema(value))
    return b"".join([encode_bytes_field(2, _encode_schema(item)) for item in value or ()])


def _encode_schema_or_strings(value: Any) -> bytes:
    if isinstance(value, dict):
        return encode_bytes_field(1, _encode_schema(value))
    return b"".join([encode_bytes_field(2, item.encode()) for item in value or ()])


_ENCODERS: dict[str, FieldWriter] = {
    "Time": _encode_time,
    "MicroTime": _encode_micro_time,
    "Quantity": lambda value: encode_bytes_field(1, (value or "0").encode()),
    "IntOrString": _encode_int_or_string,
    "Raw": _encode_raw_json,
    "SchemaOrBool": _encode_schema_or_bool,
    "SchemaOrArray": _encode_schema_or_array,
    "SchemaOrStringArray": _encode_schema_or_strings,
}
