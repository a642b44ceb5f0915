"""Downloads one file by HTTP GET, with a limit on its size and on the time.

In: a URL, headers, certificates, a proxy, a deadline. Out: status code, body, and where a redirect leads to.
Never: follows a redirect; puts a header into a message; connects to a link-local address, unless a proxy does.
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from argosy.errors import TransientError, UserError
from argosy.http_client.allowed_host_request import build_tls_context, connect, describe_error, open_connection
from argosy.http_client.allowed_hosts import ALLOW_ALL_HOSTS, HostRules
from argosy.http_client.client_certificates import load_client_certificate
from argosy.http_client.proxies import Proxy, choose_proxy
from argosy.http_client.request_deadline import RequestDeadline

_CHUNK_BYTES: Final = 1 << 16
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class DownloadTooLarge(UserError):
    """The file is larger than the limit."""


class CertificateRejected(UserError):
    """The host's certificate is not trusted, or the certificates of the request are invalid."""


@dataclass(frozen=True)
class DownloadRequest:
    url: str
    max_bytes: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    authorities: str = ""  # PEM; replaces the authorities that this machine trusts
    client_certificate: str = field(default="", repr=False)
    client_key: str = field(default="", repr=False)
    insecure: bool = False
    proxy: str = field(default="", repr=False)  # empty: the proxy of the environment
    no_proxy: str = ""


@dataclass(frozen=True)
class DownloadResponse:
    code: int
    body: bytes
    location: str = ""  # of a redirect


def download(
    request: DownloadRequest, deadline: RequestDeadline, rules: HostRules = ALLOW_ALL_HOSTS
) -> DownloadResponse:
    """Send the request. Raises UserError if it cannot be sent as it is, TransientError without an answer."""
    parts, host, port = _split_url(request.url)
    context = _build_context(request) if parts.scheme == "https" else None
    target, netloc = _encode_target(parts), parts.netloc.rpartition("@")[2]
    headers = {"Host": netloc, "User-Agent": "argosy", **request.headers}
    proxy = choose_proxy(parts.scheme, host, port, request.proxy, request.no_proxy)
    with deadline.enforce():
        if proxy is None:
            addresses = deadline.resolve(host, lambda: rules.resolve_addresses(host, port))
            connection = _connect_to_host(host, addresses, context, deadline)
        else:
            connection = _connect_to_proxy(proxy, host, port, context, deadline)
            if context is None:  # without a tunnel, the proxy reads the request itself
                target, headers = f"http://{netloc}{target}", {**headers, **proxy.headers}
        try:
            connection.request("GET", target, headers=headers)
            response = connection.getresponse()
            body = _read_body(response, request.max_bytes, host)
        except (ValueError, UnicodeError) as error:  # a line break in a header
            raise UserError("a header or the path contains invalid characters; correct them", where=host) from error
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, ssl.SSLError) and not deadline.is_over:
                # TLS 1.3: a host refuses the client's certificate after the handshake.
                raise _build_certificate_error(host, error) from error
            reason = "timed out" if deadline.is_over else describe_error(error)
            raise TransientError(f"{host}: no response ({reason}); try again") from error
        finally:
            connection.close()
        if deadline.is_over:
            raise TransientError(f"{host}: no response (timed out); try again")
    return DownloadResponse(response.status, body, response.headers.get("Location") or "")


def _split_url(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UserError("invalid URL; it must begin with http:// or https://") from error
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise UserError("invalid URL; it must begin with http:// or https://")
    return parts, host, port or _DEFAULT_PORTS[parts.scheme]


def _encode_target(parts: SplitResult) -> str:
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    return f"{path}?{quote(parts.query, safe='%=&:/?@!$()*+,;~-._')}" if parts.query else path


def _read_body(response: http.client.HTTPResponse, max_bytes: int, host: str) -> bytes:
    body = bytearray()
    while chunk := response.read(min(_CHUNK_BYTES, max_bytes + 1 - len(body))):
        body += chunk
        if len(body) > max_bytes:
            raise DownloadTooLarge(f"the file is larger than {max_bytes} bytes", where=host)
    if response.length:  # the connection was closed before the announced end
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(body)


def _build_context(request: DownloadRequest) -> ssl.SSLContext:
    try:
        context = (
            ssl.create_default_context(cadata=request.authorities)
            if request.authorities
            else build_tls_context(insecure=False)
        )
        if request.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if request.client_certificate and request.client_key:
            load_client_certificate(context, request.client_certificate.encode(), request.client_key.encode())
    except (ssl.SSLError, ValueError) as error:
        raise CertificateRejected("the certificate of the authority or of the client cannot be read") from error
    return context


def _build_certificate_error(host: str, error: ssl.SSLError) -> CertificateRejected:
    reason = getattr(error, "verify_message", "") or (error.reason or "").lower().replace("_", " ")
    return CertificateRejected(f"the TLS handshake failed ({reason or type(error).__name__})", where=host)


def _connect_to_host(
    host: str, addresses: Sequence[tuple[str, int]], context: ssl.SSLContext | None, deadline: RequestDeadline
) -> http.client.HTTPConnection:
    try:
        return connect(host, addresses, context, deadline)
    except TransientError as error:
        if isinstance(error.__cause__, ssl.SSLError):
            raise _build_certificate_error(host, error.__cause__) from error
        raise


def _connect_to_proxy(
    proxy: Proxy, host: str, port: int, context: ssl.SSLContext | None, deadline: RequestDeadline
) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(proxy.host, proxy.port)
    if context is not None:
        connection = http.client.HTTPSConnection(proxy.host, proxy.port, context=context)
        connection.set_tunnel(host, port, proxy.headers)
    try:
        open_connection(connection, deadline.resolve(host, lambda: _resolve_proxy(proxy)), deadline)
    except (OSError, http.client.HTTPException) as error:
        connection.close()
        if isinstance(error, ssl.SSLError) and not deadline.is_over:
            raise _build_certificate_error(host, error) from error
        reason = "timed out" if deadline.is_over else describe_error(error)
        raise TransientError(f"{host}: cannot be reached through the proxy ({reason})") from error
    return connection


def _resolve_proxy(proxy: Proxy) -> list[tuple[str, int]]:
    results = socket.getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
    return [(str(item[4][0]), int(item[4][1])) for item in results]
