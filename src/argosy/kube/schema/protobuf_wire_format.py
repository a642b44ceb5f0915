"""Protobuf wire encoding: varints, tags, length-delimited fields.

In: the bytes of one message. Out: its fields as numbers and bytes, and back. Never: knows a Kubernetes type.
"""

from __future__ import annotations

from argosy.errors import ManifestError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def split_fields(data: bytes) -> list[tuple[int, int, int | bytes]]:
    """Return (field number, wire type, value) in message order; a value is bytes or an unsigned number."""
    fields: list[tuple[int, int, int | bytes]] = []
    position, end = 0, len(data)
    try:
        while position < end:
            tag = data[position]
            position += 1
            if tag > 127:
                tag, position = _read_varint(data, position - 1)
            wire_type = tag & 7
            if wire_type == BYTES:
                size = data[position]
                position += 1
                if size > 127:
                    size, position = _read_varint(data, position - 1)
                field_end = position + size
                if field_end > end:
                    raise ManifestError("unexpected EOF")
                fields.append((tag >> 3, wire_type, data[position:field_end]))
                position = field_end
            elif wire_type == VARINT:
                value = data[position]
                position += 1
                if value > 127:
                    value, position = _read_varint(data, position - 1)
                fields.append((tag >> 3, wire_type, value))
            else:
                position = _read_fixed_field(data, tag, position, fields)
            if tag < 8:
                raise ManifestError(f"proto: illegal tag 0 (wire type {wire_type})")
    except IndexError:
        raise ManifestError("unexpected EOF") from None
    return fields


def _read_fixed_field(data: bytes, tag: int, position: int, fields: list[tuple[int, int, int | bytes]]) -> int:
    size = {FIXED64: 8, FIXED32: 4}.get(tag & 7)
    if size is None:
        # k8s: protobuf groups are never used.
        raise ManifestError(f"proto: illegal wireType {tag & 7}")
    if position + size > len(data):
        raise ManifestError("unexpected EOF")
    fields.append((tag >> 3, tag & 7, data[position : position + size]))
    return position + size


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), position
        shift += 7
        if shift > 63:
            raise ManifestError("proto: integer overflow")


def read_packed_numbers(data: bytes) -> list[int]:
    """Return the numbers of a packed list."""
    values = []
    position = 0
    try:
        while position < len(data):
            value, position = _read_varint(data, position)
            values.append(value)
    except IndexError:
        raise ManifestError("unexpected EOF") from None
    return values


def to_signed(value: int, bits: int) -> int:
    """Convert an unsigned number as Go reads it into an int32 or int64."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def encode_varint(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes((value,))
    value &= 2**64 - 1
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_number_field(number: int, value: int) -> bytes:
    return encode_varint(number << 3) + encode_varint(value)


def encode_bytes_field(number: int, value: bytes) -> bytes:
    return encode_varint(number << 3 | BYTES) + encode_varint(len(value)) + value
