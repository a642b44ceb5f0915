"""uvicorn's HTTP/1.1 protocol with limits on headers, header time, write buffers and refused bodies.

In: bytes of a connection. Out: requests for the app. Never: accepts headers of unlimited size or duration.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 1 << 20  # k8s: Go's limit on the request line and header fields
HEAD_SECONDS = 32.0  # k8s: how long a client may take to send the header
HANG_UP_SECONDS = 0.5  # so that the client can read the error
WRITE_BUFFER_BYTES = 256 << 10  # unread bytes of a response; further writes wait
MOST_DISCARDED = 16 << 20  # of a refused body; they are read so that the client gets to read the error

FLOW = "argosy.flow"  # ASGI extension: tells if writes wait for the client, and aborts the connection

_STATUS = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the header is too large",'
    b'"reason":"RequestHeaderFieldsTooLarge","code":431}\n'
)
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s"
) % (len(_STATUS), _STATUS)


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = True
        self._head_bytes = 0
        self._discarded = 0
        self._refused = False
        self._patience: asyncio.TimerHandle | None = None
        self._flow_extension: dict[object, object] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        # abort, because close waits until the buffer is written, which never happens if the client does not read.
        self._flow_extension = {"abort": transport.abort, "is_full": lambda: self.flow.write_paused}
        self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forgive()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if not self._in_head or self.transport.is_closing():
            return
        self._head_bytes += len(data)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_bytes, self._discarded = True, 0, 0
        self.scope["extensions"] = {FLOW: self._flow_extension}

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._forgive()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > MOST_DISCARDED:
                self.transport.abort()

    def _refuse(self) -> None:
        """Send the error, stop reading, and abort the connection a moment later."""
        self._refused = True
        self.transport.write(TOO_LARGE)
        self.transport.pause_reading()
        self.loop.call_later(HANG_UP_SECONDS, self.transport.abort)

    def _forgive(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        self.transport.abort()
