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

from argosy.kube.schema.builtin_types import Field, Type, named
from argosy.kube.schema.protobuf_encoding import FIXED64, bytes_field, number_field, varint

_SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"

Writer = Callable[[Any], bytes]


def message(type_: Type, value: dict[str, Any]) -> bytes:
    return b"".join([write(value) for write in _writers(type_)])


@cache
def _writers(type_: Type) -> tuple[Writer, ...]:
    """Build one writer per field, in the order of field numbers; each receives the value of the whole struct."""
    fields = sorted((field for field in type_.declared if field.number), key=lambda field: field.number)
    return tuple(_embedded(field) if field.inline else _field(field) for field in fields)


def _embedded(field: Field) -> Writer:
    return lambda owner: bytes_field(field.number, message(field.type, owner))


def _field(field: Field) -> Writer:
    name, number, type_ = field.name, field.number, field.type
    if type_.kind == "list" and not type_.wrapped:
        element = _tagged(type_.items())
        return lambda owner: b"".join([element(number, item) for item in owner.get(name) or ()])
    if type_.kind == "map":
        element = _tagged(type_.items())

        def pairs(owner: Any) -> bytes:
            found = sorted((owner.get(name) or {}).items())
            return b"".join(
                [bytes_field(number, bytes_field(1, key.encode()) + element(2, item)) for key, item in found]
            )

        return pairs
    write = _tagged(type_)
    absent_is_nothing = field.pointer or type_.scalar == "bytes" or type_.wrapped

    def one(owner: Any) -> bytes:
        item = owner.get(name)
        if item is None and absent_is_nothing:
            return b""
        return write(number, item)

    return one


@cache
def _tagged(type_: Type) -> Callable[[int, Any], bytes]:
    """Build a writer of (field number, value); an absent value is written as Go's zero value."""
    if type_.kind == "struct":
        return lambda number, item: bytes_field(number, message(type_, item or {}))
    if type_.kind == "list":
        element = _tagged(type_.items())
        return lambda number, item: bytes_field(number, b"".join([element(1, each) for each in item or ()]))
    match type_.scalar:
        case "string":
            return lambda number, item: bytes_field(number, (item or "").encode())
        case "int32" | "int64" | "bool":
            return lambda number, item: number_field(number, int(item or 0))
        case "float64":
            return lambda number, item: varint(number << 3 | FIXED64) + struct.pack("<d", item or 0)
        case "bytes":
            return lambda number, item: bytes_field(number, binascii.a2b_base64(item or ""))
    convert = _CONVERT[type_.scalar]
    return lambda number, item: bytes_field(number, convert(item))


def _time(value: Any) -> bytes:
    """k8s: seconds only; the zero nanoseconds are written too."""
    return b"" if value is None else number_field(1, _seconds(value)) + number_field(2, 0)


def _micro_time(value: Any) -> bytes:
    if value is None:
        return b""
    whole, _, fraction = value.rstrip("Z").partition(".")
    return number_field(1, _seconds(whole + "Z")) + number_field(2, int(fraction or 0) * 1000)


def _seconds(value: str) -> int:
    moment = datetime.fromisoformat(value.removesuffix("Z")).replace(tzinfo=UTC)
    return int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())


def _int_or_string(value: Any) -> bytes:
    is_text = isinstance(value, str)
    return (
        number_field(1, int(is_text))
        + number_field(2, 0 if is_text else value or 0)
        + bytes_field(3, value.encode() if is_text else b"")
    )


def _raw(value: Any) -> bytes:
    return b"" if value is None else bytes_field(1, orjson.dumps(value))


def _schema(value: dict[str, Any]) -> bytes:
    return message(named(_SCHEMA), value)


def _schema_or_bool(value: Any) -> bytes:
    if isinstance(value, dict):
        return number_field(1, 1) + bytes_field(2, _schema(value))
    return number_field(1, int(bool(value)))


def _schema_or_array(value: Any) -> bytes:
    if isinstance(value, dict):
        return bytes_field(1, _schema(value))
    return b"".join([bytes_field(2, _schema(item)) for item in value or ()])


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, dict):
        return bytes_field(1, _schema(value))
    return b"".join([bytes_field(2, item.encode()) for item in value or ()])


_CONVERT: dict[str, Writer] = {
    "Time": _time,
    "MicroTime": _micro_time,
    "Quantity": lambda value: bytes_field(1, (value or "0").encode()),
    "IntOrString": _int_or_string,
    "Raw": _raw,
    "SchemaOrBool": _schema_or_bool,
    "SchemaOrArray": _schema_or_array,
    "SchemaOrStringArray": _schema_or_strings,
}
