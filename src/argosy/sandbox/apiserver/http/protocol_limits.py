"""uvicorn's HTTP/1.1 protocol with limits on headers, header time, write buffers and refused bodies.

In: bytes of a connection. Out: requests for the app. Never: accepts headers of unlimited size or duration.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 1 << 20  # k8s: Go's limit on the request line and header fields
HEADER_TIMEOUT_SECONDS = 32.0  # k8s: how long a client may take to send the header
REFUSAL_READ_SECONDS = 0.5  # so that the client can read the error
MAX_WRITE_BUFFER_BYTES = 256 << 10  # unread bytes of a response; further writes wait
MAX_DISCARDED_BYTES = 16 << 20  # of a refused body; they are read so that the client gets to read the error

FLOW_CONTROL_EXTENSION = "argosy.flow"  # ASGI extension: tells if writes wait for the client, and aborts the connection

_TOO_LARGE_STATUS = (
    b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the header is too large",'
    b'"reason":"RequestHeaderFieldsTooLarge","code":431}\n'
)
TOO_LARGE_RESPONSE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%s"
) % (len(_TOO_LARGE_STATUS), _TOO_LARGE_STATUS)


class BoundedProtocol(HttpToolsProtocol):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_header = True
        self._header_bytes = 0
        self._discarded_bytes = 0
        self._refused = False
        self._header_timer: asyncio.TimerHandle | None = None
        self._flow_extension: dict[object, object] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=MAX_WRITE_BUFFER_BYTES)
        # abort, because close waits until the buffer is written, which never happens if the client does not read.
        self._flow_extension = {"abort": transport.abort, "is_full": lambda: self.flow.write_paused}
        self._header_timer = self.loop.call_later(HEADER_TIMEOUT_SECONDS, self._on_header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_header_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        super().data_received(data)
        if not self._in_header or self.transport.is_closing():
            return
        self._header_bytes += len(data)
        if self._header_bytes > MAX_HEADER_BYTES:
            self._refuse_large_header()
        elif self._header_timer is None:
            self._header_timer = self.loop.call_later(HEADER_TIMEOUT_SECONDS, self._on_header_timeout)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_header, self._header_bytes, self._discarded_bytes = True, 0, 0
        self.scope["extensions"] = {FLOW_CONTROL_EXTENSION: self._flow_extension}

    def on_headers_complete(self) -> None:
        self._in_header = False
        self._cancel_header_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        if self.cycle.response_complete:
            self._discarded_bytes += len(body)
            if self._discarded_bytes > MAX_DISCARDED_BYTES:
                self.transport.abort()

    def _refuse_large_header(self) -> None:
        """Send the error, stop reading, and abort the connection a moment later."""
        self._refused = True
        self.transport.write(TOO_LARGE_RESPONSE)
        self.transport.pause_reading()
        self.loop.call_later(REFUSAL_READ_SECONDS, self.transport.abort)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _on_header_timeout(self) -> None:
        self._header_timer = None
        self.transport.abort()
