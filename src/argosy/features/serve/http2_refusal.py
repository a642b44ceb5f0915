"""Answers clients that start with HTTP/2: each request is refused with HTTP_1_1_REQUIRED.

In: the bytes of a connection that began with HTTP/2's preface. Out: the bytes to answer. Never: reads a request; keeps
more than one frame.

The argocd CLI tests a server with an HTTP/2 connection before it logs in, and waits 30 seconds for an answer. Native
gRPC needs HTTP/2 too; a client that gets this refusal falls back to gRPC-Web at once.
"""

from __future__ import annotations

import struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_FRAME_BYTES: Final = 16 << 10  # HTTP/2: what a server must accept
MAX_FRAMES: Final = 1000
_HEADER_BYTES: Final = 9
_HEADERS, _RST_STREAM, _SETTINGS, _PING, _GO_AWAY = 1, 3, 4, 6, 7
_ACK: Final = 1
_HTTP_1_1_REQUIRED: Final = 0xD


def has_preface(data: bytes) -> bool | None:
    """True if a connection begins with the preface; None if these first bytes do not tell: P may begin POST, too."""
    if data.startswith(PREFACE):
        return True
    return None if PREFACE.startswith(data) else False


class Http2Refusal:
    """State of one connection. `is_over`: the connection must be closed."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._has_preface = False
        self._frames = 0
        self.is_over = False

    def receive(self, data: bytes) -> bytes:
        """Take bytes of the client; return what to send."""
        if self.is_over:
            return b""
        self._unread += data
        answer = bytearray()
        if not self._has_preface:
            if len(self._unread) < len(PREFACE):
                self.is_over = not PREFACE.startswith(self._unread)
                return b""
            if not self._unread.startswith(PREFACE):
                self.is_over = True
                return b""
            del self._unread[: len(PREFACE)]
            self._has_preface = True
            answer += _build_frame(_SETTINGS)
        while not self.is_over and len(self._unread) >= _HEADER_BYTES:
            size = int.from_bytes(self._unread[:3])
            if size > MAX_FRAME_BYTES or self._frames >= MAX_FRAMES:
                self.is_over = True
            elif len(self._unread) < _HEADER_BYTES + size:
                break
            else:
                head = bytes(self._unread[:_HEADER_BYTES])
                payload = bytes(self._unread[_HEADER_BYTES : _HEADER_BYTES + size])
                del self._unread[: _HEADER_BYTES + size]
                answer += self._answer_frame(head, payload)
        return bytes(answer)

    def _answer_frame(self, head: bytes, payload: bytes) -> bytes:
        self._frames += 1
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9]) & 0x7FFFFFFF
        if kind == _HEADERS and stream:
            return _build_frame(_RST_STREAM, stream=stream, payload=struct.pack(">I", _HTTP_1_1_REQUIRED))
        if kind == _SETTINGS and not flags & _ACK:
            return _build_frame(_SETTINGS, flags=_ACK)
        if kind == _PING and not flags & _ACK and len(payload) == 8:
            return _build_frame(_PING, flags=_ACK, payload=payload)
        self.is_over = kind == _GO_AWAY
        return b""


def _build_frame(kind: int, *, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + payload
