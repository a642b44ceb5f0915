"""The head of an HTTP/2 request as an ASGI scope.

In: the headers of a stream, the addresses of its connection. Out: the scope. Never: trusts what the client says about
its address or about TLS.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Scope = MutableMapping[str, Any]


@dataclass(frozen=True)
class ConnectionAddresses:
    server: tuple[str, int | None] | None
    client: tuple[str, int] | None
    scheme: str  # http or https


class InvalidRequest(Exception):
    """The request has no valid path."""


def build_scope(headers: Iterable[tuple[bytes, bytes]], addresses: ConnectionAddresses) -> Scope:
    """Raise InvalidRequest for a path that no HTTP/1.1 request could have."""
    pseudo_headers: dict[bytes, bytes] = {}
    fields: list[tuple[bytes, bytes]] = []
    cookies: list[bytes] = []
    for name, value in headers:
        if name.startswith(b":"):
            pseudo_headers[name] = value
        elif name == b"cookie":
            cookies.append(value)
        else:
            fields.append((name, value))
    if cookies:  # HTTP/2 may send each cookie in a header of its own
        fields.append((b"cookie", b"; ".join(cookies)))
    if authority := pseudo_headers.get(b":authority"):
        fields = [(b"host", authority), *(field for field in fields if field[0] != b"host")]
    raw_path, _, query = pseudo_headers.get(b":path", b"").partition(b"?")
    if not raw_path.startswith(b"/") or not raw_path.isascii():
        raise InvalidRequest
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "2",
        "method": pseudo_headers.get(b":method", b"").decode("latin-1"),
        "scheme": addresses.scheme,
        "path": unquote(raw_path.decode("ascii")),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": fields,
        "server": addresses.server,
        "client": addresses.client,
        "extensions": {"http.response.trailers": {}},
        "state": {},
    }


def is_grpc_request(scope: Scope) -> bool:
    content_type = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
    return scope["method"] == "POST" and bool(content_type.lower().startswith(b"application/grpc"))
