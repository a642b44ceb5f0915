"""Sends one HTTP request with custom headers to an allowed host.

In: a request. Out: status code and body. Never: follows a redirect; puts more of a URL than its host into a message,
because the path may be a credential; skips certificate verification unless requested.
"""

from __future__ import annotations

import http.client
import math
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from argosy.errors import TransientError, UserError
from argosy.http_client.allowed_hosts import ALLOW_ALL_HOSTS, HostRules
from argosy.http_client.anonymous_request import PlainResponse
from argosy.http_client.request_deadline import RequestDeadline

DEFAULT_TIMEOUT_SECONDS: Final = 10.0
DEADLINE_FACTOR: Final = 3  # the whole request may take this many times the timeout of one read
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


def build_deadline(request: OutboundRequest) -> RequestDeadline:
    return RequestDeadline(request.timeout_seconds * DEADLINE_FACTOR)


def send_request(
    request: OutboundRequest, rules: HostRules = ALLOW_ALL_HOSTS, deadline: RequestDeadline | None = None
) -> PlainResponse:
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
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    target = f"{path}?{quote(parts.query, safe='%=&:/?@!$()*+,;~-._')}" if parts.query else path
    started_at = time.monotonic()
    deadline = deadline or build_deadline(request)
    with deadline.enforce():
        host = parts.hostname
        addresses = deadline.resolve(host, lambda: rules.resolve_addresses(host, port))
        connection = connect(host, addresses, context, deadline, read_seconds=request.timeout_seconds)
        try:
            _write_request(connection, request, target, parts.netloc.rpartition("@")[2])
            response = connection.getresponse()
            body = response.read(MAX_RESPONSE_BYTES)
        except (OSError, http.client.HTTPException) as error:
            reason = "timed out" if deadline.is_over else describe_error(error)
            raise DeliveryUnknown(f"{host}: no response ({reason}); check there if it arrived") from error
        finally:
            connection.close()
        if deadline.is_over:
            raise DeliveryUnknown(f"{host}: no response (timed out); check there if it arrived")
    return PlainResponse(response.status, body, time.monotonic() - started_at)


def connect(
    host: str,
    addresses: Sequence[tuple[str, int]],
    context: ssl.SSLContext | None,
    deadline: RequestDeadline,
    *,
    read_seconds: float = math.inf,
) -> http.client.HTTPConnection:
    """Connect to an address that was checked: DNS may return another one the next time. No context: no TLS."""
    connection = http.client.HTTPSConnection(host, context=context) if context else http.client.HTTPConnection(host)
    try:
        open_connection(connection, addresses, deadline, read_seconds)
    except OSError as error:
        connection.close()
        if deadline.is_over:
            raise TransientError(f"{host}: cannot be reached (timed out); check that it is running") from None
        advice = "trust its CA on this machine" if isinstance(error, ssl.SSLError) else "check that it is running"
        raise TransientError(f"{host}: cannot be reached ({describe_error(error)}); {advice}") from error
    return connection


def open_connection(
    connection: http.client.HTTPConnection,
    addresses: Sequence[tuple[str, int]],
    deadline: RequestDeadline,
    read_seconds: float = math.inf,
) -> None:
    """Connect to one of the addresses, through TLS and the proxy's tunnel if the connection has them."""

    def connect_before_deadline(*_: object) -> socket.socket:
        return deadline.connect(addresses, read_seconds)

    setattr(connection, "_create_connection", connect_before_deadline)  # noqa: B010
    connection.connect()


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
