"""Counts the frames of an HTTP/2 connection before they are parsed: frames without use are few per second.

In: the bytes of a connection, a clock. Out: whether the client sent too many such frames. Never: reads a payload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAX_IDLE_FRAMES: Final = 1000  # SETTINGS, PING, WINDOW_UPDATE, tiny DATA and so on, at once
IDLE_FRAMES_PER_SECOND: Final = 100.0
RESET_COST: Final = 10  # a reset stream has cost more than a frame: at most 100 at once, and 10 a second
FRAMES_PER_SENT_DATA: Final = 3.0  # a client answers data with WINDOW_UPDATE for stream and connection, and PING
SMALL_DATA_BYTES: Final = 256
_HEADER_BYTES: Final = 9
_DATA, _HEADERS, _RST_STREAM, _CONTINUATION = 0, 1, 3, 9
_END_STREAM, _END_HEADERS = 0x1, 0x4
_STREAM_MASK: Final = (1 << 31) - 1


class FrameBudget:
    """`is_exceeded`: the connection must be closed. `is_in_headers`: the header of a request is not complete."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = float(MAX_IDLE_FRAMES)
        self._refilled_at = clock()
        self._head = bytearray()  # of a frame, as far as it was received
        self._unread_payload = 0
        self._last_stream = 0
        self.is_in_headers = False

    @property
    def is_exceeded(self) -> bool:
        return self._left < 0

    def count_sent_data(self) -> None:
        self._left = min(self._left + FRAMES_PER_SENT_DATA, MAX_IDLE_FRAMES)

    def count_refusal(self) -> None:
        """Count a request that is refused at once: nothing else limits how many of them a client sends."""
        self._left -= RESET_COST

    def count_received(self, data: bytes) -> None:
        """Count the frames that begin in these bytes, which come after the preface."""
        now = self._clock()
        earned = (now - self._refilled_at) * IDLE_FRAMES_PER_SECOND
        self._left, self._refilled_at = min(self._left + earned, MAX_IDLE_FRAMES), now
        position = 0
        while position < len(data):
            if self._unread_payload:
                skipped = min(self._unread_payload, len(data) - position)
                self._unread_payload -= skipped
                position += skipped
                continue
            part = data[position : position + _HEADER_BYTES - len(self._head)]
            self._head += part
            position += len(part)
            if len(self._head) == _HEADER_BYTES:
                stream = int.from_bytes(self._head[5:9]) & _STREAM_MASK
                self._count_frame(int.from_bytes(self._head[:3]), self._head[3], self._head[4], stream)
                self._head.clear()

    def _count_frame(self, size: int, kind: int, flags: int, stream: int) -> None:
        self._unread_payload = size
        if kind in (_HEADERS, _CONTINUATION):
            self.is_in_headers = not flags & _END_HEADERS
        opens_stream = kind == _HEADERS and stream > self._last_stream
        if opens_stream:
            self._last_stream = stream
        elif not (kind == _DATA and (size >= SMALL_DATA_BYTES or flags & _END_STREAM)):
            # A header of an earlier stream is answered with a reset, too.
            self._left -= RESET_COST if kind in (_RST_STREAM, _HEADERS) else 1
