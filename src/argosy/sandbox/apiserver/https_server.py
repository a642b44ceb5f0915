"""Serves the control plane over HTTPS on a loopback address, with uvicorn on the running loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator

import uvicorn

from argosy.errors import UserError
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.http.asgi import ApiServerApp
from argosy.sandbox.apiserver.http.protocol_limits import BoundedProtocol
from argosy.sandbox.apiserver.tls import CertificateFiles

LOOPBACK = "127.0.0.1"
LISTEN_BACKLOG = 2048
SHUTDOWN_TIMEOUT_SECONDS = 1


class _SignalFreeServer(uvicorn.Server):
    """uvicorn without signal handlers, because the owner of the loop handles signals."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


def open_listener(port: int, *, allow_other_port: bool = False) -> socket.socket:
    # IPPROTO_TCP is explicit: otherwise asyncio leaves Nagle on, and every small response waits 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        if allow_other_port and port:
            return open_listener(0)
        advice = "choose another with --port (for the demo: --api-port), or 0 for any free one"
        message = f"port {port} cannot be used ({error.strerror}); {advice}"
        raise UserError(message, where=LOOPBACK) from error
    listener.set_inheritable(False)
    return listener


@contextlib.asynccontextmanager
async def serve_https(
    plane: ControlPlane, certificates: CertificateFiles, *, port: int = 0, allow_other_port: bool = False
) -> AsyncIterator[str]:
    """Yield the URL once requests are served. `allow_other_port`: use any free port if this one is taken."""
    listener = open_listener(port, allow_other_port=allow_other_port)
    config = uvicorn.Config(
        ApiServerApp(plane),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=LISTEN_BACKLOG,
        ssl_certfile=str(certificates.certificate),
        ssl_keyfile=str(certificates.key),
        timeout_keep_alive=90,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_SECONDS,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = _SignalFreeServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn has only a flag for it
            await asyncio.sleep(0.002)
        if task.done():
            await task
        yield f"https://{LOOPBACK}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        plane.store.close_watches()  # otherwise the shutdown would wait for open watches
        with contextlib.suppress(asyncio.CancelledError):
            await task
        listener.close()
