"""Protobuf wire encoding: varints, tags, length-delimited fields.

In: the bytes of one message. Out: its fields as numbers and bytes, and back. Never: knows a Kubernetes type.
"""

from __future__ import annotations

from argosy.errors import ManifestError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def split(data: bytes) -> list[tuple[int, int, int | bytes]]:
    """Return (field number, wire type, value) in message order; a value is bytes or an unsigned number."""
    found: list[tuple[int, int, int | bytes]] = []
    at, end = 0, len(data)
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag > 127:
                tag, at = _varint(data, at - 1)
            wire = tag & 7
            if wire == BYTES:
                size = data[at]
                at += 1
                if size > 127:
                    size, at = _varint(data, at - 1)
                stop = at + size
                if stop > end:
                    raise ManifestError("unexpected EOF")
                found.append((tag >> 3, wire, data[at:stop]))
                at = stop
            elif wire == VARINT:
                value = data[at]
                at += 1
                if value > 127:
                    value, at = _varint(data, at - 1)
                found.append((tag >> 3, wire, value))
            else:
                at = _fixed(data, tag, at, found)
            if tag < 8:
                raise ManifestError(f"proto: illegal tag 0 (wire type {wire})")
    except IndexError:
        raise ManifestError("unexpected EOF") from None
    return found


def _fixed(data: bytes, tag: int, at: int, found: list[tuple[int, int, int | bytes]]) -> int:
    size = {FIXED64: 8, FIXED32: 4}.get(tag & 7)
    if size is None:
        # k8s: protobuf groups are never used.
        raise ManifestError(f"proto: illegal wireType {tag & 7}")
    if at + size > len(data):
        raise ManifestError("unexpected EOF")
    found.append((tag >> 3, tag & 7, data[at : at + size]))
    return at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), at
        shift += 7
        if shift > 63:
            raise ManifestError("proto: integer overflow")


def packed(data: bytes) -> list[int]:
    """Return the numbers of a packed list."""
    values = []
    at = 0
    try:
        while at < len(data):
            value, at = _varint(data, at)
            values.append(value)
    except IndexError:
        raise ManifestError("unexpected EOF") from None
    return values


def signed(value: int, bits: int) -> int:
    """Convert an unsigned number as Go reads it into an int32 or int64."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def varint(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes((value,))
    value &= 2**64 - 1
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    made.append(value)
    return bytes(made)


def number_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_field(number: int, value: bytes) -> bytes:
    return varint(number << 3 | BYTES) + varint(len(value)) + value
