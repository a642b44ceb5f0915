"""Frames of gRPC and gRPC-Web: one flag byte, four for the length, the message; gRPC-Web has one with trailers, too.

In: the body of a request, messages, a status. Out: messages, frames. Never: a compressed message.
"""

from __future__ import annotations

import struct
from typing import Final

from argosy.web.grpc.call_status import CallError, CallStatus, StatusCode

HEADER_BYTES: Final = 5
MAX_FRAMES: Final = 10_000  # in one request, those with trailers included
MAX_STREAM_FRAMES: Final = 40_000  # in a client stream; argo: its CLI sends files in pieces of 1 KiB
MAX_ANNOUNCED_BYTES: Final = (1 << 32) - 1  # what the length of a frame can say
_DATA_FLAG, _COMPRESSED_FLAG, _TRAILERS_FLAG = 0, 1, 0x80


class FrameSplitter:
    """Splits a body that arrives in chunks. `encoding`: its grpc-encoding. argo: codes and messages are grpc-go's."""

    def __init__(
        self, encoding: str = "", max_frames: int = MAX_FRAMES, max_first_bytes: int = MAX_ANNOUNCED_BYTES
    ) -> None:
        self._encoding, self._max_frames = encoding, max_frames
        self._max_bytes = max_first_bytes  # of the next message
        self._rest = bytearray()  # the beginning of a frame
        self._count = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that are complete. A first one that is too long is refused when its header arrives."""
        self._rest += data
        messages: list[bytes] = []
        position = 0
        while (start := position + HEADER_BYTES) <= len(self._rest):
            flag, size = struct.unpack_from(">BI", self._rest, position)
            if flag == _COMPRESSED_FLAG:
                raise _refuse_compression(self._encoding)
            if flag not in (_DATA_FLAG, _TRAILERS_FLAG):
                raise CallError(StatusCode.INTERNAL, f"grpc: received unexpected payload format {flag} in a gRPC frame")
            if size > self._max_bytes:
                problem = f"grpc: received message larger than max ({size} vs. {self._max_bytes})"
                raise CallError(StatusCode.RESOURCE_EXHAUSTED, problem)
            if start + size > len(self._rest):
                break
            self._count += 1
            if self._count > self._max_frames:
                raise CallError(StatusCode.RESOURCE_EXHAUSTED, f"more than {self._max_frames} frames in one request")
            position = start + size
            if flag == _DATA_FLAG:
                self._max_bytes = MAX_ANNOUNCED_BYTES
                messages.append(bytes(self._rest[start:position]))
        del self._rest[:position]
        return messages

    def finish(self) -> None:
        """Raise CallError if the body ends within a frame."""
        if not self._rest:
            return
        if len(self._rest) < HEADER_BYTES:
            raise CallError(StatusCode.INTERNAL, "unexpected EOF in the header of a gRPC frame")
        _, size = struct.unpack_from(">BI", self._rest)
        problem = f"the frame announces {size} bytes, but {len(self._rest) - HEADER_BYTES} follow"
        raise CallError(StatusCode.INTERNAL, f"unexpected EOF: {problem}")


def split_frames(body: bytes, encoding: str = "", max_frames: int = MAX_FRAMES) -> list[bytes]:
    """Return the messages of a request body."""
    splitter = FrameSplitter(encoding, max_frames)
    messages = splitter.feed(body)
    splitter.finish()
    return messages


def _refuse_compression(encoding: str) -> CallError:
    if encoding in ("", "identity"):
        return CallError(StatusCode.INTERNAL, "grpc: compressed flag set with identity or empty encoding")
    problem = f'grpc: Decompressor is not installed for grpc-encoding "{encoding[:20]}"'
    return CallError(StatusCode.UNIMPLEMENTED, f"{problem}; send uncompressed messages")


def encode_frame(message: bytes) -> bytes:
    return struct.pack(">BI", _DATA_FLAG, len(message)) + message


def encode_trailers(status: CallStatus) -> bytes:
    text = b"".join(b"%s: %s\r\n" % header for header in status.build_headers())
    return struct.pack(">BI", _TRAILERS_FLAG, len(text)) + text
