"""Frames of gRPC-Web: one flag byte, four bytes for the length, the message; the last frame has the trailers.

In: the body of a request, messages, a status. Out: messages, frames. Never: a compressed message.
"""

from __future__ import annotations

import struct
from typing import Final

from argosy.web.grpc_web.call_status import CallError, CallStatus, StatusCode

HEADER_BYTES: Final = 5
MAX_FRAMES: Final = 10_000  # in one request, those with trailers included
MAX_STREAM_FRAMES: Final = 40_000  # in a client stream; argo: its CLI sends files in pieces of 1 KiB
_DATA_FLAG, _COMPRESSED_FLAG, _TRAILERS_FLAG = 0, 1, 0x80


def split_frames(body: bytes, encoding: str = "", max_frames: int = MAX_FRAMES) -> list[bytes]:
    """Return the messages of a request body. `encoding`: its grpc-encoding. argo: codes and messages are grpc-go's."""
    messages: list[bytes] = []
    position = count = 0
    while position < len(body):
        start = position + HEADER_BYTES
        if start > len(body):
            raise CallError(StatusCode.INTERNAL, "unexpected EOF in the header of a gRPC frame")
        flag, size = struct.unpack_from(">BI", body, position)
        position = start + size
        if flag == _COMPRESSED_FLAG:
            raise _refuse_compression(encoding)
        if flag not in (_DATA_FLAG, _TRAILERS_FLAG):
            raise CallError(StatusCode.INTERNAL, f"grpc: received unexpected payload format {flag} in a gRPC frame")
        if position > len(body):
            problem = f"the frame announces {size} bytes, but {len(body) - start} follow"
            raise CallError(StatusCode.INTERNAL, f"unexpected EOF: {problem}")
        count += 1
        if count > max_frames:
            raise CallError(StatusCode.RESOURCE_EXHAUSTED, f"more than {max_frames} frames in one request")
        if flag == _DATA_FLAG:
            messages.append(body[start:position])
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
