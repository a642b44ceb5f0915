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
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import UserError
from argosy.features.serve.http2.connection_count import ConnectionCount

if TYPE_CHECKING:
    import uvicorn

log = logging.getLogger(__name__)
BACKLOG: Final = 1024
CERTIFICATE_CHECK_SECONDS: Final = 10.0  # seconds between checks of the certificate files
# A client that offers both gets HTTP/1.1, as browsers; clients of gRPC offer h2 only.
ALPN_PROTOCOLS: Final = ["http/1.1", "h2"]


@dataclass(frozen=True)
class ServerCertificate:
    certificate: Path
    key: Path

    def load_into(self, context: ssl.SSLContext) -> None:
        context.load_cert_chain(self.certificate, self.key)

    def read_file_stamp(self) -> tuple[tuple[int, int], ...]:
        """Fingerprint of the files that changes with the certificate; empty if they are missing."""
        with contextlib.suppress(OSError):
            stats = [item.stat() for item in (self.certificate, self.key)]
            return tuple((item.st_ino, item.st_mtime_ns) for item in stats)
        return ()


def open_listener(address: str, port: int, *, any_port: bool = False, flag: str = "--port") -> socket.socket:
    """Open a listening socket. `any_port`: use a free port if this one is taken."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # accepted connections inherit it: otherwise, each frame waits 40 ms for the acknowledgement of the one before
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if any_port and port and error.errno in (errno.EADDRINUSE, errno.EACCES):
            return open_listener(address, 0)
        message = f"cannot listen on port {port} ({error.strerror}); choose another with {flag}, or 0 for any free port"
        raise UserError(message, where=address) from error
    listener.set_inheritable(False)
    return listener


@contextlib.asynccontextmanager
async def serve_application(
    application: Any,
    listeners: Sequence[socket.socket],
    *,
    certificate: ServerCertificate | None = None,
    on_closing: Callable[[], None] = lambda: None,
    is_trusted_proxy: Callable[[str], bool] = lambda _: False,
) -> AsyncIterator[int]:
    """Serve and yield the port. `on_closing` is called first at shutdown, to end open streams.

    `is_trusted_proxy`: true for the address of a proxy, whose connections are those of many clients.
    """
    import uvicorn

    class Server(uvicorn.Server):
        """uvicorn without signal handlers: the caller handles signals."""

        @contextlib.contextmanager
        def capture_signals(self):  # type: ignore[no-untyped-def]
            yield

    config = _build_config(application, certificate, is_trusted_proxy)
    server = Server(config)
    stamp = certificate.read_file_stamp() if certificate else ()
    task = asyncio.create_task(server.serve(sockets=list(listeners)))
    reload_task: asyncio.Task[None] | None = None
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn only sets a flag
            await asyncio.sleep(0.002)
        if task.done():
            await task
        if certificate and config.ssl:
            reload_task = asyncio.create_task(
                _watch_certificate_files(certificate, stamp, config.ssl), name="renewed certificate"
            )
        yield int(listeners[0].getsockname()[1])
    finally:
        on_closing()
        if reload_task:
            reload_task.cancel()
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await task
        for listener in listeners:
            listener.close()


def _build_config(
    application: Any, certificate: ServerCertificate | None, is_trusted_proxy: Callable[[str], bool]
) -> uvicorn.Config:
    import uvicorn

    config = uvicorn.Config(
        application,
        http=_build_protocol_class(is_trusted_proxy),
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
    config.load()
    if config.ssl:
        config.ssl.set_alpn_protocols(ALPN_PROTOCOLS)
    return config


async def _watch_certificate_files(
    certificate: ServerCertificate, stamp: tuple[tuple[int, int], ...], context: ssl.SSLContext
) -> None:
    """Reload the certificate for new connections when its files change; open connections are kept."""
    while True:
        await asyncio.sleep(CERTIFICATE_CHECK_SECONDS)
        if stamp == (stamp := certificate.read_file_stamp()) or not stamp:
            continue
        try:
            certificate.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # check the pair before changing the context
            certificate.load_into(context)
            log.info("reloaded the TLS certificate: %s", certificate.certificate)
        except (OSError, ssl.SSLError) as error:
            message = "cannot load the changed TLS certificate, keeping the old one: %s (%s)"
            log.warning(message, certificate.certificate, error.strerror or error)


def _build_protocol_class(is_trusted_proxy: Callable[[str], bool]) -> type[asyncio.Protocol]:
    from argosy.features.serve.http_protocol import ServerProtocol

    class Protocol(ServerProtocol):
        http2_connections = ConnectionCount(is_trusted_proxy)

    return Protocol
