"""A client of HTTP/2 in memory: it talks to a connection of the server without a socket.

In: an ASGI application. Out: the events that the server's frames mean. Never: waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from argosy.features.serve.http2.connection import Http2Connection
from argosy.features.serve.http2.request_scope import ConnectionAddresses
from support.deadlines import HANG_SECONDS

GRPC_HEADERS = (
    (":method", "POST"),
    (":scheme", "http"),
    (":authority", "127.0.0.1"),
    (":path", "/version.VersionService/Version"),
    ("content-type", "application/grpc"),
    ("te", "trailers"),
)


class MemoryTransport(asyncio.Transport):
    """Keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_closed = self.is_reading_paused = False

    def write(self, data: Any) -> None:
        if not self.is_closed:
            self.written += data

    def close(self) -> None:
        self.is_closed = True

    def abort(self) -> None:
        self.is_closed = True

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False


class MemoryClient:
    """`events`: all that the server sent, as far as `read` was called."""

    def __init__(self, application: Any, *, acknowledges: bool = True) -> None:
        self.transport = MemoryTransport()
        self.tasks: set[Any] = set()
        addresses = ConnectionAddresses(("127.0.0.1", 80), ("10.0.0.9", 4711), "http")
        loop = asyncio.get_running_loop()
        self.server = Http2Connection(self.transport, application, addresses, self.tasks, loop)
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.events: list[Event] = []
        self._acknowledges = acknowledges

    def flush(self) -> None:
        self.server.receive(self.h2.data_to_send())

    def request(
        self, body: bytes | None = b"", headers: Iterable[tuple[str, str]] = GRPC_HEADERS, *, flush: bool = True
    ) -> int:
        """Send a request; None leaves it open."""
        stream_id = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream_id, list(headers))
        if body is not None:
            self.h2.send_data(stream_id, body, end_stream=True)
        if flush:
            self.flush()
        return stream_id

    def read(self) -> list[Event]:
        """Read what the server wrote."""
        data = bytes(self.transport.written)
        self.transport.written.clear()
        for event in self.h2.receive_data(data):
            self.events.append(event)
            if isinstance(event, DataReceived) and self._acknowledges:
                self.h2.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
        if (answer := self.h2.data_to_send()) and not self.transport.is_closed:
            self.server.receive(answer)
        return self.events

    async def until(self, kind: type[Event], stream_id: int | None = None) -> Any:
        """Let the server work until it has sent this event."""
        async with asyncio.timeout(HANG_SECONDS):
            while not (events := self.list(kind, stream_id)):
                await asyncio.sleep(0)
                self.read()
        return events[0]

    def list(self, kind: type[Event], stream_id: int | None = None) -> list[Any]:
        return [
            event
            for event in self.events
            if isinstance(event, kind) and stream_id in (None, getattr(event, "stream_id", None))
        ]

    def body(self, stream_id: int) -> bytes:
        return b"".join(event.data for event in self.list(DataReceived, stream_id))

    def status(self, stream_id: int) -> str:
        (answer,) = self.list(ResponseReceived, stream_id)
        return dict(answer.headers)[":status"]


__all__ = [
    "GRPC_HEADERS", "ConnectionTerminated", "DataReceived", "MemoryClient", "ResponseReceived", "StreamEnded",
    "StreamReset", "TrailersReceived",
]  # fmt: skip
