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
from argosy.http_client.allowed_hosts import ALLOW_ALL_HOSTS, HostRules
from argosy.http_client.anonymous_request import PlainResponse

DEFAULT_TIMEOUT_SECONDS: Final = 10.0
DEADLINE_FACTOR: Final = 3  # the whole response may take this many times the timeout of one read
MAX_RESPONSE_BYTES: Final = 1 << 20
METHODS: Final = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"})


class DeliveryUnknown(TransientError):
    """The request was sent, but no response came: the result is unknown."""


@dataclass(frozen=True)
class OutboundRequest:
    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    insecure: bool = False
    ca_certificates: str = ""  # additional CA certificates as PEM


def send_request(request: OutboundRequest, rules: HostRules = ALLOW_ALL_HOSTS) -> PlainResponse:
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
    context = _build_request_tls_context(request) if parts.scheme == "https" else None
    addresses = rules.resolve_addresses(parts.hostname, port)
    connection = connect(parts.hostname, addresses, context, request.timeout_seconds)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    target = f"{path}?{quote(parts.query, safe='%=&:/?@!$()*+,;~-._')}" if parts.query else path
    started_at = time.monotonic()
    with enforce_deadline(connection, request.timeout_seconds * DEADLINE_FACTOR) as is_late:
        try:
            _write_request(connection, request, target, parts.netloc.rpartition("@")[2])
            response = connection.getresponse()
            body = response.read(MAX_RESPONSE_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise DeliveryUnknown(
                f"{parts.hostname}: no response ({describe_error(error)}); check there if it arrived"
            ) from error
        finally:
            connection.close()
    if is_late.is_set():
        raise DeliveryUnknown(f"{parts.hostname}: no response (timed out); check there if it arrived")
    return PlainResponse(response.status, body, time.monotonic() - started_at)


@contextlib.contextmanager
def enforce_deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """Close the connection after a deadline: its own timeout is per read, and a slow server could keep it open."""
    is_late, raw_socket = threading.Event(), connection.sock

    def close_late() -> None:
        is_late.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(
                raw_socket, socket.SHUT_RDWR
            )  # the raw socket: another thread may be reading through TLS

    timer = threading.Timer(seconds, close_late)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()


def connect(
    host: str, addresses: Sequence[tuple[str, int]], context: ssl.SSLContext | None, timeout_seconds: float
) -> http.client.HTTPConnection:
    """Connect to an address that was checked: DNS may return another one the next time. No context: no TLS."""
    problem: Exception | None = None
    for address, port in addresses:
        connection = (
            http.client.HTTPSConnection(host, port, timeout=timeout_seconds, context=context)
            if context
            else http.client.HTTPConnection(host, port, timeout=timeout_seconds)
        )
        setattr(connection, "_create_connection", _build_connector(address, port))  # noqa: B010
        try:
            connection.connect()
        except OSError as error:
            problem = error
            connection.close()
        else:
            return connection
    advice = "trust its CA on this machine" if isinstance(problem, ssl.SSLError) else "check that it is running"
    raise TransientError(f"{host}: cannot be reached ({describe_error(problem)}); {advice}") from problem


def _build_connector(address: str, port: int) -> Callable[..., socket.socket]:
    return lambda _, *options: socket.create_connection((address, port), *options)


def _build_request_tls_context(request: OutboundRequest) -> ssl.SSLContext:
    context = build_tls_context(insecure=request.insecure)
    if request.ca_certificates:
        try:
            context.load_verify_locations(cadata=request.ca_certificates)
        except (ssl.SSLError, ValueError) as error:
            raise UserError("the CA certificates are invalid; write them as PEM") from error
    return context


def build_tls_context(*, insecure: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _write_request(connection: http.client.HTTPConnection, request: OutboundRequest, target: str, host: str) -> None:
    headers = {"Host": host, "User-Agent": "argosy", **dict(request.headers)}
    try:
        connection.request(request.method, target, request.body or None, headers)
    except (ValueError, UnicodeError) as error:  # a line break in a header would start another header
        raise UserError("a header or the path contains invalid characters; correct the service") from error


def describe_error(error: Exception | None) -> str:
    return str(getattr(error, "strerror", None) or getattr(error, "reason", None) or type(error).__name__)
