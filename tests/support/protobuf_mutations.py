"""Protobuf messages that are almost valid, for fuzz tests of the decoder.

In: a random source, messages of real objects. Out: mutated messages. Never: a message that depends on anything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from argosy.errors import ManifestError
from argosy.kube.schema import protobuf_envelope
from argosy.kube.schema.builtin_go_struct_fields import Type, find_builtin_type
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.schema.builtin_type_json_codec import decode
from argosy.kube.schema.protobuf_wire_format import BYTES, VARINT, encode_bytes_field, encode_varint, split_fields

SCALARS: dict[str, Any] = {
    "string": "text", "int32": 7, "int64": 2**40, "bool": True, "float64": 1.5, "bytes": "YQ==",
    "Time": "2026-11-15T02:00:00Z", "MicroTime": "2026-11-15T02:00:00.000123Z", "Duration": "5s", "Quantity": "500m",
    "IntOrString": "80", "Raw": {"a": [1, {"b": None}]}, "SchemaOrBool": {"type": "string"},
    "SchemaOrArray": [{"type": "string"}], "SchemaOrStringArray": ["a"],
}  # fmt: skip
MAX_FILL_DEPTH = 7
MAX_MESSAGE_BYTES = 30_000
OTHER_KINDS = [
    ("policy", "v1", "Eviction"),
    ("authentication.k8s.io", "v1", "TokenRequest"),
    ("", "v1", "DeleteOptions"),
]
JUNK = [
    b"", b"\x00", b"\x80", b"\xff" * 9 + b"\x01", b"\xff" * 10, b"\xff" * 11, b"\x80" * 10 + b"\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\x0b\x0c", b"\x0b" * 200, b"\x0c",
    b"\x0b\x0a\x01a\x0c", b"\x06", b"\x07",
    b"k8s\x00", b"\x0a\xff\xff\xff\xff\x07", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"\xfa\xff\xff\xff\xff\xff\xff\xff\x0f\x00",
    b"\x1b" * 5000, b"[" * 2000, b'{"a":' * 1500, b"1e999", b"NaN", b"9" * 6000, b"-1", b"1e1000000000", b"\x00" * 8,
]  # fmt: skip


def fill(type_: Type, depth: int = 0) -> Any:
    """Return a value with every field of its type set, down to MAX_FILL_DEPTH."""
    if type_.kind == "struct":
        unsaid = {"kind", "apiVersion"} if type_.is_kind else set()
        if depth > MAX_FILL_DEPTH:
            return {}
        return {name: fill(field.type, depth + 1) for name, field in type_.fields.items() if name not in unsaid}
    if type_.kind == "list":
        return [fill(type_.items(), depth + 1)]
    if type_.kind == "map":
        return {"key": fill(type_.items(), depth + 1)}
    return SCALARS[type_.scalar]


def real_messages() -> list[bytes]:
    """Return one message per built-in kind with all fields set; the size of deeply nested kinds is limited."""
    kinds = [(resource.group, resource.version, resource.kind) for resource in BUILTIN_RESOURCES] + OTHER_KINDS
    return [message for kind in kinds if (message := _filled_message(*kind))]


def _filled_message(group: str, version: str, kind: str) -> bytes:
    type_ = find_builtin_type(group, version, kind)
    assert type_ is not None
    api_version = f"{group}/{version}" if group else version
    message = b""
    for depth in range(MAX_FILL_DEPTH, -1, -1):  # start with few levels: nested schemas grow with each level
        value = fill(type_, depth)
        deeper = protobuf_envelope.encode(decode(type_, value, kind=kind, api_version=api_version).manifest)
        if message and len(deeper) > MAX_MESSAGE_BYTES:
            break
        message = deeper
    return message


def mutated_messages(rng: Random, messages: list[bytes], count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield mutate(rng, rng.choice(messages), messages)


def mutate(rng: Random, message: bytes, others: list[bytes]) -> bytes:
    """Make one to four changes; most keep the lengths of enclosing messages valid, so that the parser reaches them."""
    body = message[4:]
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        if rng.random() < 0.7:
            body = _mutate_inside(rng, body, others, 0)
        else:
            body = _damage(rng, body)
    prefix = message[:4] if rng.random() > 0.002 else rng.choice((b"", b"k8s", b"K8S\x00"))
    return prefix + body


def _mutate_inside(rng: Random, body: bytes, others: list[bytes], depth: int) -> bytes:
    """Descend into a random field, change it, and re-encode the enclosing lengths."""
    fields = _fields(body)
    if not fields:
        return _damage(rng, body)
    at = rng.randrange(len(fields))
    number, wire, value = fields[at]
    if wire == BYTES and isinstance(value, bytes) and rng.random() < 0.75 and depth < 30:
        fields[at] = (number, wire, _mutate_inside(rng, value, others, depth + 1))
        return _joined(fields)
    how = rng.randrange(10)
    if how == 0:
        del fields[at]
    elif how == 1:
        fields[at:at] = [fields[at]] * rng.choice((1, 2, 50))
    elif how == 2:  # another field number
        fields[at] = (rng.choice((0, 1, 2, 3, 15, 16, 2047, 2**29 - 1, 2**29)), wire, value)
    elif how == 3:  # another wire type with a valid value
        fields[at] = (number, VARINT, rng.choice((0, 1, 2**31, 2**32, 2**63, 2**64 - 1)))
    elif how == 4:
        fields[at] = (number, BYTES, rng.choice(JUNK))
    elif how == 5:  # change the wire type and keep the value
        raw = _joined([fields[at]])
        return _joined(fields[:at]) + bytes([raw[0] & 0xF8 | rng.randrange(8)]) + raw[1:] + _joined(fields[at + 1 :])
    elif how == 6:
        fields[at] = (number, BYTES, _nested(rng, number))
    elif how == 7:
        fields.insert(at, (rng.randrange(1, 40), rng.choice((1, 5)), rng.randbytes(rng.choice((4, 8)))))
    elif how == 8:
        other = rng.choice(others)[4:]
        start = rng.randrange(len(other))
        fields[at] = (number, BYTES, other[start : start + rng.choice((3, 30, 300))])
    else:
        return _joined(fields[:at]) + rng.choice(JUNK) + _joined(fields[at:])
    return _joined(fields)


def _damage(rng: Random, body: bytes) -> bytes:
    if not body:
        return rng.choice(JUNK)
    at = rng.randrange(len(body))
    how = rng.randrange(6)
    if how == 0:
        return body[:at]
    if how == 1:
        return body[:at] + bytes([rng.randrange(256)]) + body[at + 1 :]
    if how == 2:
        return body[:at] + rng.choice(JUNK) + body[at:]
    if how == 3:
        return body[:at] + body[at + rng.choice((1, 2, 8, 40)) :]
    if how == 4:
        return body[:at] + bytes([body[at] ^ (1 << rng.randrange(8))]) + body[at + 1 :]
    return body[:at] + encode_varint(rng.choice((127, 128, 2**31 - 1, 2**31, 2**63, 2**64 - 1))) + body[at + 1 :]


def _nested(rng: Random, number: int) -> bytes:
    """Return a message that is nested in itself many times."""
    inner, number = b"", rng.choice((number, 1, 2, 29, 34))
    for _ in range(rng.choice((3, 50, 99, 101, 150))):
        inner = encode_bytes_field(number or 1, inner)
    return inner


def _fields(body: bytes) -> list[tuple[int, int, int | bytes]]:
    try:
        return split_fields(body)
    except ManifestError:
        return []


def _joined(fields: list[tuple[int, int, int | bytes]]) -> bytes:
    parts = []
    for number, wire, value in fields:
        tag = encode_varint(number << 3 | wire)
        if isinstance(value, int):
            parts.append(tag + encode_varint(value))
        elif wire == BYTES:
            parts.append(tag + encode_varint(len(value)) + value)
        else:
            parts.append(tag + value)
    return b"".join(parts)
