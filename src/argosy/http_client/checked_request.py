"""Sends one HTTP request with custom headers to an allowed host.

In: a request. Out: status code and body. Never: follows a redirect; puts more of a URL than its host into a message,
because the path may be a credential; skips certificate verification unless requested.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from argosy.errors import TransientError, UserError
from argosy.http_client.allowed_hosts import ANYWHERE, HostRules
from argosy.http_client.plain_request import Answered

SECONDS: Final = 10.0
DEADLINE_FACTOR: Final = 3  # the whole response may take this many times the timeout of one read
MOST_ANSWER: Final = 1 << 20
METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})


class Unanswered(TransientError):
    """The request was sent, but no response came: the result is unknown."""


@dataclass(frozen=True)
class Request:
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    seconds: float = SECONDS
    insecure: bool = False
    authorities: str = ""  # additional CA certificates as PEM


def send(request: Request, rules: HostRules = ANYWHERE) -> Answered:
    """Send a request. Raises UserError if it is invalid, TransientError if nothing was sent, else DeliveryUnknown."""
    if request.method not in METHODS:
        raise UserError(f"invalid method {request.method[:20]!r}; use one of {', '.join(sorted(METHODS))}")
    try:
        parts = urlsplit(request.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise UserError("invalid URL; it must begin with http:// or https://") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError("invalid URL; it must begin with http:// or https://")
    connection = _connected(parts.scheme, parts.hostname, rules.addresses(parts.hostname, port), request)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    target = f"{path}?{quote(parts.query, safe='%=&:/?@!$()*+,;~-._')}" if parts.query else path
    began = time.monotonic()
    with _deadline(connection, request.seconds * DEADLINE_FACTOR) as is_late:
        try:
            _write(connection, request, target, parts.netloc.rpartition("@")[2])
            response = connection.getresponse()
            body = response.read(MOST_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise Unanswered(f"{parts.hostname}: no response ({_why(error)}); check there if it arrived") from error
        finally:
            connection.close()
    if is_late.is_set():
        raise Unanswered(f"{parts.hostname}: no response (timed out); check there if it arrived")
    return Answered(response.status, body, time.monotonic() - began)


@contextlib.contextmanager
def _deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """Close the connection after a deadline: its own timeout is per read, and a slow server could keep it open."""
    is_late, line = threading.Event(), connection.sock

    def end() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(line, socket.SHUT_RDWR)  # the raw socket: another thread may be reading through TLS

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def _connected(
    scheme: str, host: str, addresses: Sequence[tuple[str, int]], request: Request
) -> http.client.HTTPConnection:
    """Connect to the address that was checked: DNS may return another one the next time."""
    problem: Exception | None = None
    for address, port in addresses:
        connection = _connection(scheme, host, port, request)
        setattr(connection, "_create_connection", _to(address, port))  # noqa: B010
        try:
            connection.connect()
        except OSError as error:
            problem = error
            connection.close()
        else:
            return connection
    advice = "trust its CA on this machine" if isinstance(problem, ssl.SSLError) else "check that it is running"
    raise TransientError(f"{host}: cannot be reached ({_why(problem)}); {advice}") from problem


def _to(address: str, port: int) -> Callable[..., socket.socket]:
    return lambda _, *more: socket.create_connection((address, port), *more)


def _connection(scheme: str, host: str, port: int, request: Request) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=request.seconds)
    return http.client.HTTPSConnection(host, port, timeout=request.seconds, context=_trust(request))


def _trust(request: Request) -> ssl.SSLContext:
    context = trust(insecure=request.insecure)
    if request.authorities:
        try:
            context.load_verify_locations(cadata=request.authorities)
        except (ssl.SSLError, ValueError) as error:
            raise UserError("the CA certificates are invalid; write them as PEM") from error
    return context


def trust(*, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _write(connection: http.client.HTTPConnection, request: Request, target: str, host: str) -> None:
    headers = {"Host": host, "User-Agent": "argosy", **dict(request.headers)}
    try:
        connection.request(request.method, target, request.body or None, headers)
    except (ValueError, UnicodeError) as error:  # a line break in a header would start another header
        raise UserError("a header or the path contains invalid characters; correct the service") from error


def _why(error: Exception | None) -> str:
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__)
