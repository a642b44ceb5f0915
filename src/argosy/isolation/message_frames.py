"""Frames between the parent, the fork server and the workers: four bytes of length, then the body.

In: bytes or JSON. Out: frames, and their contents. Never: trusts an unchecked length.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import orjson

LENGTH = struct.Struct("<I")
CALL_HEADER = struct.Struct("<IIH")  # the frame's length, the call's serial number, the length of its head
ANSWER_HEADER = struct.Struct("<IcI")  # the frame's length, the kind of answer, the call's serial number
ANSWER_HEADER_BYTES = ANSWER_HEADER.size - LENGTH.size

# The first byte of a worker's answer.
READY, DONE, RAISED, NO_MEMORY, TOO_LARGE, UNKNOWN = b"r", b"+", b"-", b"m", b"o", b"?"

_SERIAL_MASK = 0xFFFFFFFF

MAX_ERROR_CHARACTERS = 4 << 10  # characters of an exception's message
# Bytes: an answer may be an error message even if the output limit is tiny.
MIN_ANSWER_LIMIT_BYTES = 4 * MAX_ERROR_CHARACTERS


class FrameTooLarge(Exception):
    """The peer announced a frame above the limit; `length` is the announced length."""

    def __init__(self, length: int) -> None:
        super().__init__(f"a frame of {length} bytes")
        self.length = length


def pack_message(message: Any) -> bytes:
    """Encode a control message as one frame."""
    body = orjson.dumps(message)
    return LENGTH.pack(len(body)) + body


def pack_call(serial: int, head: bytes, payload: bytes) -> bytes:
    """Encode a call as one frame: `head` is from `pack_head`, `payload` is JSON."""
    length = CALL_HEADER.size - LENGTH.size + len(head) + len(payload)
    return b"".join((CALL_HEADER.pack(length, serial & _SERIAL_MASK, len(head)), head, payload))


def pack_answer(kind: bytes, serial: int, body: bytes) -> bytes:
    """Encode a worker's answer as one frame."""
    return ANSWER_HEADER.pack(ANSWER_HEADER_BYTES + len(body), kind, serial) + body


def is_answer_to(frame: bytes, serial: int) -> bool:
    """True if the frame (without its length) is an answer to the call with this serial number."""
    return len(frame) >= ANSWER_HEADER_BYTES and frame[1:ANSWER_HEADER_BYTES] == LENGTH.pack(serial & _SERIAL_MASK)


def pack_head(function: str, cpu: float, output: int) -> bytes:
    """Encode the function and limits of a call; the same for all payloads of a batch."""
    return orjson.dumps([function, cpu, output])


class FrameBuffer:
    """Collects bytes and yields complete frames."""

    __slots__ = ("_buffer", "limit")

    def __init__(self, limit: int) -> None:
        self._buffer = bytearray()
        self.limit = limit

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def read_frames(self) -> Iterator[bytes]:
        """Yield every complete frame; raises FrameTooLarge if an announced length exceeds the limit."""
        buffer, start = self._buffer, 0
        frames: list[bytes] = []
        while len(buffer) - start >= 4:
            (length,) = LENGTH.unpack_from(buffer, start)
            if length > self.limit:
                del buffer[:start]
                yield from frames
                raise FrameTooLarge(length)
            end = start + 4 + length
            if len(buffer) < end:
                break
            frames.append(bytes(memoryview(buffer)[start + 4 : end]))
            start = end
        del buffer[:start]
        yield from frames
