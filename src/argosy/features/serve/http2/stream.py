"""One HTTP/2 request: the ASGI events that the application receives and sends.

In: data and the end of the request, ASGI events of the response. Out: headers, data and trailers for the connection.
Never: more unread data than the window that the client was given; more unsent data than the client has room for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, Protocol

from argosy.features.serve.http2.request_scope import Scope
from argosy.web.middleware.request_head import CLIENT_GONE_EXTENSION

log = logging.getLogger(__name__)
Event = MutableMapping[str, Any]
Application = Callable[[Scope, Callable[[], Awaitable[Event]], Callable[[Event], Awaitable[None]]], Awaitable[None]]
Headers = Sequence[tuple[bytes, bytes]]
STALLED_STREAM_SECONDS: Final = 60.0  # seconds until a request is reset whose client gives no room for its response
# Headers of HTTP/1.1 about the connection; HTTP/2 does not permit them.
_CONNECTION_HEADERS: Final = frozenset({
    b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"
})  # fmt: skip


class StreamWriter(Protocol):
    """What a stream needs of its connection."""

    def acknowledge(self, stream_id: int, size: int) -> None:
        """Give the client room for as many bytes again."""
        ...

    def send_headers(self, stream_id: int, headers: Headers, *, is_last: bool) -> None: ...

    def send_data(self, stream_id: int, data: memoryview) -> int:
        """Send as much as the client has room for now; return how much that was."""
        ...

    def end(self, stream_id: int) -> None: ...

    def reset(self, stream_id: int, *, is_error: bool) -> None: ...


class Http2Stream:
    def __init__(self, stream_id: int, scope: Scope, writer: StreamWriter) -> None:
        self.stream_id, self.scope, self._writer = stream_id, scope, writer
        self._chunks: list[bytes] = []
        self._unread_bytes = 0  # for flow control, with padding
        self._is_request_complete = self._is_request_read = False
        self._readable, self._writable = asyncio.Event(), asyncio.Event()
        self._start: Event | None = None  # the start of the response, until its headers are sent
        self._has_trailers = False
        self._is_response_complete = self._is_reset = False
        scope["extensions"][CLIENT_GONE_EXTENSION] = lambda: self._is_reset
        self.task: asyncio.Task[None] | None = None

    # -- called by the connection --------------------------------------------------------------------------------

    def take_data(self, data: bytes, size: int) -> None:
        if self._is_response_complete or self._is_reset:
            self._writer.acknowledge(self.stream_id, size)
            return
        self._chunks.append(data)
        self._unread_bytes += size
        self._readable.set()

    def end_request(self) -> None:
        self._is_request_complete = True
        self._readable.set()

    def wake(self) -> None:
        """Try again to send: the client or the connection may have room."""
        self._writable.set()

    def cancel(self) -> None:
        """End the request, whose client is gone."""
        self._is_reset = True
        self._readable.set()
        self._writable.set()
        if self.task:
            self.task.cancel()

    async def run(self, application: Application) -> None:
        try:
            await application(self.scope, self.receive, self.send)
        except Exception:
            log.exception("HTTP/2 request failed")

    def finish(self) -> None:
        """Tell the client that nothing more is read or sent; called after the task, which may never have run."""
        if self._unread_bytes:
            self._writer.acknowledge(self.stream_id, self._unread_bytes)
        if not self._is_reset and not (self._is_response_complete and self._is_request_complete):
            self._writer.reset(self.stream_id, is_error=not self._is_response_complete)

    # -- called by the application -------------------------------------------------------------------------------

    async def receive(self) -> Event:
        while True:
            if self._is_reset or self._is_response_complete:
                return {"type": "http.disconnect"}
            if self._chunks or (self._is_request_complete and not self._is_request_read):
                return self._read_request()
            self._readable.clear()
            await self._readable.wait()

    def _read_request(self) -> Event:
        body = b"".join(self._chunks)
        self._chunks.clear()
        if self._unread_bytes:
            self._writer.acknowledge(self.stream_id, self._unread_bytes)
            self._unread_bytes = 0
        self._is_request_read = self._is_request_complete
        return {"type": "http.request", "body": body, "more_body": not self._is_request_complete}

    async def send(self, event: Event) -> None:
        if self._is_reset or self._is_response_complete:
            return
        match event["type"]:
            case "http.response.start":
                self._start, self._has_trailers = event, bool(event.get("trailers"))
            case "http.response.body":
                await self._send_body(event.get("body", b""), is_last=not event.get("more_body", False))
            case "http.response.trailers":
                self._send_head(is_last=False)
                self._writer.send_headers(self.stream_id, _select_headers(event["headers"]), is_last=True)
                self._complete()

    async def _send_body(self, body: bytes, *, is_last: bool) -> None:
        is_last = is_last and not self._has_trailers
        self._send_head(is_last=is_last and not body)
        unsent = memoryview(body)
        while unsent and not self._is_reset:
            if not (sent := self._writer.send_data(self.stream_id, unsent)):
                await self._wait_for_room()
            unsent = unsent[sent:]
        if is_last and not self._is_reset and not self._is_response_complete:
            self._writer.end(self.stream_id)
            self._complete()

    def _send_head(self, *, is_last: bool) -> None:
        if self._start is None:
            return
        status = (b":status", b"%d" % self._start["status"])
        headers = [status, *_select_headers(self._start.get("headers", ()))]
        self._start = None
        self._writer.send_headers(self.stream_id, headers, is_last=is_last)
        if is_last:
            self._complete()

    async def _wait_for_room(self) -> None:
        self._writable.clear()
        try:
            async with asyncio.timeout(STALLED_STREAM_SECONDS):
                await self._writable.wait()
        except TimeoutError:
            self._is_reset = True
            self._readable.set()
            self._writer.reset(self.stream_id, is_error=True)

    def _complete(self) -> None:
        self._is_response_complete = True
        self._readable.set()


def _select_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    lowered = [(name.lower(), value) for name, value in headers]
    return [(name, value) for name, value in lowered if name not in _CONNECTION_HEADERS]
