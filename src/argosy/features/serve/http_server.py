"""HTTP server: runs an ASGI application with uvicorn on the current event loop.

In: an application, sockets, certificates. Out: its port, once it accepts requests. Never: handles signals; waits for
open streams at shutdown.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from argosy.errors import UserError

log = logging.getLogger(__name__)
BACKLOG: Final = 1024
RENEWED: Final = 10.0  # seconds between checks of the certificate files
STALLED: Final = 60.0  # seconds until a client that reads nothing is disconnected


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path

    def load(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self.certificate, self.key)

    def stamp(self) -> tuple[tuple[int, int], ...]:
        """Fingerprint of the files that changes with the certificate; empty if they are missing."""
        with contextlib.suppress(OSError):
            found = [each.stat() for each in (self.certificate, self.key)]
            return tuple((each.st_ino, each.st_mtime_ns) for each in found)
        return ()


def bind(address: str, port: int, *, any_port: bool = False, flag: str = "--port") -> socket.socket:
    """Open a listening socket. `any_port`: use a free port if this one is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if any_port and port and error.errno in (errno.EADDRINUSE, errno.EACCES):
            return bind(address, 0)
        message = f"cannot listen on port {port} ({error.strerror}); choose another with {flag}, or 0 for any free port"
        raise UserError(message, where=address) from error
    listener.set_inheritable(False)
    return listener


@contextlib.asynccontextmanager
async def listening(
    application: Any,
    listeners: Sequence[socket.socket],
    *,
    certificate: Certificate | None = None,
    closing: Callable[[], None] = lambda: None,
) -> AsyncIterator[int]:
    """Serve and yield the port. `closing` is called first at shutdown, to end open streams."""
    import uvicorn

    class Server(uvicorn.Server):
        """uvicorn without signal handlers: the caller handles signals."""

        @contextlib.contextmanager
        def capture_signals(self):  # type: ignore[no-untyped-def]
            yield

    config = uvicorn.Config(
        application,
        http=_protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        backlog=BACKLOG,
        ssl_certfile=str(certificate.certificate) if certificate else None,
        ssl_keyfile=str(certificate.key) if certificate else None,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = Server(config)
    stamp = certificate.stamp() if certificate else ()
    task = asyncio.create_task(server.serve(sockets=list(listeners)))
    renewing: asyncio.Task[None] | None = None
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn only sets a flag
            await asyncio.sleep(0.002)
        if task.done():
            await task
        if certificate and config.ssl:
            renewing = asyncio.create_task(_renewed(certificate, stamp, config.ssl), name="renewed certificate")
        yield int(listeners[0].getsockname()[1])
    finally:
        closing()
        if renewing:
            renewing.cancel()
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for each in listeners:
            each.close()


async def _renewed(certificate: Certificate, stamp: tuple[tuple[int, int], ...], context: ssl.SSLContext) -> None:
    """Reload the certificate for new connections when its files change; open connections are kept."""
    while True:
        await asyncio.sleep(RENEWED)
        if stamp == (stamp := certificate.stamp()) or not stamp:
            continue
        try:
            certificate.load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # check the pair before changing the context
            certificate.load(context)
            log.info("reloaded the TLS certificate: %s", certificate.certificate)
        except (OSError, ssl.SSLError) as error:
            why = "cannot load the changed TLS certificate, keeping the old one: %s (%s)"
            log.warning(why, certificate.certificate, error.strerror or error)


def _protocol() -> type[asyncio.Protocol]:
    from argosy.sandbox.apiserver.http.protocol_limits import BoundedProtocol

    class Protocol(BoundedProtocol):
        """Aborts connections of clients that read nothing: open streams are limited."""

        _stalled: asyncio.TimerHandle | None = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._stalled = self.loop.call_later(STALLED, self.transport.abort)

        def resume_writing(self) -> None:
            self._resumed()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self._resumed()
            super().connection_lost(exc)

        def _resumed(self) -> None:
            if self._stalled is not None:
                self._stalled.cancel()
                self._stalled = None

    return Protocol
