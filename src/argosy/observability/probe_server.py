"""HTTP server for health probes and metrics.

In: functions that return metrics and problems. Out: responses to GET /healthz, /livez, /readyz and /metrics. Never:
serves anything else; reads more than the header of a request; waits long for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from argosy.observability.metrics import CONTENT_TYPE

ALL_ADDRESSES: Final = ("", "::", "0.0.0.0")  # noqa: S104 - only if configured
LOOPBACK: Final = "127.0.0.1"
MAX_REQUEST_BYTES: Final = 8192
REQUEST_TIMEOUT_SECONDS: Final = 5.0
log = logging.getLogger(__name__)


def no_problems() -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class ProbeSources:
    """What the probes report: metrics, and problems with health, readiness and liveness."""

    metrics: Sequence[Callable[[], str]] = ()
    health_problems: Callable[[], Sequence[str]] = no_problems
    readiness_problems: Callable[[], Sequence[str]] = no_problems
    liveness_problems: Callable[[], Sequence[str]] = no_problems  # only problems that a restart would fix


@contextlib.asynccontextmanager
async def serve_probes(
    port: int, sources: ProbeSources, *, address: str = LOOPBACK, flag: str = "--port"
) -> AsyncIterator[int]:
    """Serve probes and yield the port, 0 if none; -1 chooses any free port. `flag`: the flag that sets the port."""
    if not port:
        yield 0
        return
    try:
        handle = partial(_handle_request, sources)
        listener = _open_socket(max(port, 0), address)
        server = await asyncio.start_server(handle, sock=listener, limit=MAX_REQUEST_BYTES)
    except OSError as error:
        message = "cannot listen on port %s of %s (%s): no probes and metrics are served; choose another port: %s N"
        log.warning(message, port, address, os.strerror(error.errno or 0), flag)
        yield 0
        return
    async with server:
        yield int(server.sockets[0].getsockname()[1])


def is_address(text: str) -> bool:
    """True if the text is an IP address or localhost."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text == "localhost"
    return True


def _open_socket(port: int, address: str) -> socket.socket:
    """Listen on one address, or on all addresses of the machine, IPv4 and IPv6."""
    if address not in ALL_ADDRESSES:
        address = LOOPBACK if address == "localhost" else address
        return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


async def _handle_request(sources: ProbeSources, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
            request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = request.split(" ", 2)  # ValueError: not a request
            code, text = _build_response(method, path, sources)
            body = text.encode()
            header = f"HTTP/1.1 {code}\r\nContent-Type: {CONTENT_TYPE}\r\n"
            writer.write(f"{header}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
    writer.close()


def _build_response(method: str, path: str, sources: ProbeSources) -> tuple[str, str]:
    path = path.partition("?")[0]
    if method != "GET":
        return "405 Method Not Allowed", "method not allowed: only GET is supported\n"
    list_problems = {
        "/healthz": sources.health_problems,
        "/livez": sources.liveness_problems,
        "/readyz": sources.readiness_problems,
    }.get(path)
    if list_problems is not None:
        problems = list_problems()
        return (
            ("503 Service Unavailable", "".join(f"{item}\n" for item in problems)) if problems else ("200 OK", "ok\n")
        )
    if path == "/metrics":
        return "200 OK", "".join(item() for item in sources.metrics)
    return "404 Not Found", "not found; available: /healthz, /livez, /readyz and /metrics\n"
