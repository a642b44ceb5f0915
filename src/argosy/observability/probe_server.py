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

EVERYWHERE: Final = ("", "::", "0.0.0.0")  # noqa: S104 - only if configured
LOOPBACK: Final = "127.0.0.1"
MOST_QUESTION: Final = 8192  # bytes
PATIENCE: Final = 5.0  # seconds
log = logging.getLogger(__name__)


def nothing() -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class Signs:
    """What the probes report: metrics, and problems with health, readiness and liveness."""

    measures: Sequence[Callable[[], str]] = ()
    troubles: Callable[[], Sequence[str]] = nothing
    unready: Callable[[], Sequence[str]] = nothing
    stuck: Callable[[], Sequence[str]] = nothing  # only problems that a restart would fix


@contextlib.asynccontextmanager
async def probed(port: int, signs: Signs, *, listen: str = LOOPBACK, flag: str = "--port") -> AsyncIterator[int]:
    """Serve probes and yield the port, 0 if none; -1 chooses any free port. `flag`: the flag that sets the port."""
    if not port:
        yield 0
        return
    try:
        answer = partial(_answer, signs)
        listener = _socket(max(port, 0), listen)
        server = await asyncio.start_server(answer, sock=listener, limit=MOST_QUESTION)
    except OSError as error:
        words = "cannot listen on port %s of %s (%s): no probes and metrics are served; choose another port: %s N"
        log.warning(words, port, listen, os.strerror(error.errno or 0), flag)
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


def _socket(port: int, listen: str) -> socket.socket:
    """Listen on one address, or on all addresses of the machine, IPv4 and IPv6."""
    if listen not in EVERYWHERE:
        listen = LOOPBACK if listen == "localhost" else listen
        return socket.create_server((listen, port), family=socket.AF_INET6 if ":" in listen else socket.AF_INET)
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


async def _answer(signs: Signs, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        async with asyncio.timeout(PATIENCE):
            question = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, path, _ = question.split(" ", 2)  # ValueError: not a request
            code, text = _found(method, path, signs)
            body = text.encode()
            head = f"HTTP/1.1 {code}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
    writer.close()


def _found(method: str, path: str, signs: Signs) -> tuple[str, str]:
    path = path.partition("?")[0]
    if method != "GET":
        return "405 Method Not Allowed", "method not allowed: only GET is supported\n"
    asked = {"/healthz": signs.troubles, "/livez": signs.stuck, "/readyz": signs.unready}.get(path)
    if asked is not None:
        against = asked()
        return ("503 Service Unavailable", "".join(f"{each}\n" for each in against)) if against else ("200 OK", "ok\n")
    if path == "/metrics":
        return "200 OK", "".join(each() for each in signs.measures)
    return "404 Not Found", "not found; available: /healthz, /livez, /readyz and /metrics\n"
