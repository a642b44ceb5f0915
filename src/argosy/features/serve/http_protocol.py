"""One connection of the web server: HTTP/1.1, or HTTP/2 if the client begins with it.

In: bytes of a client. Out: ASGI requests. Never: waits for a client that reads nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from argosy.features.serve.http2.connection_count import ConnectionCount
from argosy.features.serve.http2.preface import REFUSAL, has_preface
from argosy.features.serve.http2.request_scope import ConnectionAddresses
from argosy.sandbox.apiserver.http.protocol_limits import BoundedProtocol

if TYPE_CHECKING:
    from argosy.features.serve.http2.connection import Http2Connection

STALLED_CLIENT_SECONDS: Final = 60.0  # seconds until a client that reads nothing is disconnected


class ServerProtocol(BoundedProtocol):
    """Speaks HTTP/2 if the client begins with it, and aborts connections of clients that read nothing."""

    http2_connections: ConnectionCount  # of the server
    _stalled: asyncio.TimerHandle | None = None
    _http2: Http2Connection | None = None
    _undecided: bytes | None = b""  # first bytes, while they may be HTTP/1.1 or HTTP/2

    def data_received(self, data: bytes) -> None:
        if self._undecided is not None:
            data = self._undecided + data
            is_http2 = has_preface(data)
            if is_http2 is None:  # the header timeout ends a connection that never tells
                self._undecided = data
                return
            self._undecided = None
            if is_http2:
                self._begin_http2()
        if self._http2:
            self._http2.receive(data)
        elif not self.transport.is_closing():
            super().data_received(data)

    def _begin_http2(self) -> None:
        from argosy.features.serve.http2.connection import Http2Connection

        self._cancel_header_timer()
        if not self.http2_connections.open(self._address):
            self.transport.write(REFUSAL)
            self.transport.close()
            return
        addresses = ConnectionAddresses(self.server, self.client, self.scheme or "http")
        self._http2 = Http2Connection(self.transport, self.app, addresses, self.tasks, self.loop)

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def shutdown(self) -> None:
        if self._http2:
            self._http2.shut_down()
        else:
            super().shutdown()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_CLIENT_SECONDS, self.transport.abort)
        if self._http2:
            self._http2.pause_writing()

    def resume_writing(self) -> None:
        self._cancel_stall_timer()
        super().resume_writing()
        if self._http2:
            self._http2.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_stall_timer()
        if self._http2:
            self._http2.lose()
            self.http2_connections.close(self._address)
        super().connection_lost(exc)

    def _cancel_stall_timer(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
