"""The plane on the wire: HTTPS on a loopback address, served by uvicorn on this loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator

import uvicorn

from argosy.errors import UserError
from argosy.sandbox.apiserver.control_plane import Plane
from argosy.sandbox.apiserver.http.asgi import App
from argosy.sandbox.apiserver.http.protocol_limits import BoundedProtocol
from argosy.sandbox.apiserver.tls import Certificates

LOOPBACK = "127.0.0.1"
BACKLOG = 2048
DRAIN_SECONDS = 1


class _Server(uvicorn.Server):
    """uvicorn, but signals are the business of whoever runs the loop."""

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


def bind(port: int, *, any_port: bool = False) -> socket.socket:
    # The protocol is named: else asyncio leaves Nagle on, and every small answer waits 40 ms for an acknowledgement.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        listener.close()
        if any_port and port:
            return bind(0)
        advice = "choose another with --port (for the demo: --api-port), or 0 for any free one"
        message = f"port {port} cannot be used ({error.strerror}); {advice}"
        raise UserError(message, where=LOOPBACK) from error
    listener.set_inheritable(False)
    return listener


@contextlib.asynccontextmanager
async def serve(
    plane: Plane, certificates: Certificates, *, port: int = 0, any_port: bool = False
) -> AsyncIterator[str]:
    """Yields the URL as soon as requests are answered there. `any_port`: the port is a wish, not an order."""
    listener = bind(port, any_port=any_port)
    config = uvicorn.Config(
        App(plane),
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        ssl_certfile=str(certificates.certificate),
        ssl_keyfile=str(certificates.key),
        timeout_keep_alive=90,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not task.done():  # noqa: ASYNC110 - uvicorn tells it by a flag only
            await asyncio.sleep(0.002)
        if task.done():
            await task
        yield f"https://{LOOPBACK}:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        plane.store.end_watches()  # else the server would wait for clients that wait for it
        with contextlib.suppress(asyncio.CancelledError):
            await task
        listener.close()
