"""Sends one HTTP request to a URL from a user, with limits and without credentials.

In: a URL, and optionally JSON to post. Out: status code, body and seconds. Never: reads more than the limit; follows a
redirect; sends a credential.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from argosy.errors import TransientError, UserError

MAX_RESPONSE_BYTES: Final = 16 << 20
LOOPBACK: Final = "127.0.0.1"
LOCALHOST_SUFFIX: Final = ".localhost"  # RFC 6761: all such names are this machine, even if DNS does not know them


@dataclass(frozen=True)
class PlainResponse:
    code: int
    body: bytes
    seconds: float

    def read_json(self) -> Any:
        """Return the body as JSON; None if it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def send_plain_request(
    url: str, document: Any = None, *, timeout_seconds: float = 60.0, insecure: bool = False
) -> PlainResponse:
    """Send a GET, or a POST with JSON. Raises UserError for an invalid URL, TransientError without a response."""
    parts, name, port = _split_url(url)
    host = LOOPBACK if name.endswith(LOCALHOST_SUFFIX) else name
    data = None if document is None else json.dumps(document).encode()
    headers = {"Host": parts.netloc, **({"Content-Type": "application/json"} if data is not None else {})}
    connection = _build_connection(parts.scheme, host, port, timeout_seconds, insecure=insecure)
    started_at = time.monotonic()
    try:
        connection.request("GET" if data is None else "POST", parts.path or "/", data, headers)
        response = connection.getresponse()
        body = response.read(MAX_RESPONSE_BYTES + 1)
    except UnicodeError as error:  # a host or path that HTTP cannot encode
        raise _build_url_error(url) from error
    except (OSError, http.client.HTTPException) as error:
        raise TransientError(f"{url}: no response ({_describe_error(error)}); {_suggest_next_step(error)}") from error
    finally:
        connection.close()
    if len(body) > MAX_RESPONSE_BYTES:
        raise UserError(f"{url}: the response is larger than {MAX_RESPONSE_BYTES >> 20} MiB; request less")
    return PlainResponse(response.status, body, time.monotonic() - started_at)


def _split_url(url: str) -> tuple[SplitResult, str, int | None]:
    """Return the parts of a URL, its host and its port. Raises UserError."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:  # invalid brackets or port
        raise _build_url_error(url) from error
    if parts.scheme not in ("http", "https") or not host:
        raise _build_url_error(url)
    return parts, host, port


def _build_url_error(url: str) -> UserError:
    return UserError(f"invalid URL {url!r}; write it as http://host:port/path or https://host:port/path")


def _build_connection(
    scheme: str, host: str, port: int | None, timeout_seconds: float, *, insecure: bool
) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout_seconds)
    context = ssl.create_default_context()
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, timeout=timeout_seconds, context=context)


def _describe_error(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _suggest_next_step(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "trust the certificate's CA on this machine, or add --insecure"
    return "check that the URL can be reached from here"


def is_resolvable(host: str) -> bool:
    """True if this machine can resolve the host name."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False
