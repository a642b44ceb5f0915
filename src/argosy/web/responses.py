"""Responses of routes, as plain values that do not need the web framework.

In: –. Out: frozen values. Never: written to a socket directly; redaction comes in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Headers = tuple[tuple[str, str], ...]
# For user content in a frame: no origin, no scripts, no requests.
FRAME_SECURITY_POLICY: Final = (
    "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'"
)


@dataclass(frozen=True)
class WebResponse:
    code: int = field(default=200, kw_only=True)
    headers: Headers = field(default=(), kw_only=True)
    is_from_request_only: bool = field(default=False, kw_only=True)  # so redaction is skipped


@dataclass(frozen=True)
class JsonResponse(WebResponse):
    document: Any = None


@dataclass(frozen=True)
class PageResponse(WebResponse):
    template: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TextResponse(WebResponse):
    text: str = ""
    media_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class BytesResponse(WebResponse):
    data: bytes = b""
    media_type: str = "application/octet-stream"
    is_immutable: bool = False  # the URL contains the content's digest; may be cached forever


@dataclass(frozen=True)
class RedirectResponse(WebResponse):
    location: str = "/"  # path on this server
    is_external: bool = field(default=False, kw_only=True)  # or an absolute URL, for example of an identity provider
    code: int = field(default=303, kw_only=True)


@dataclass(frozen=True)
class StreamResponse(WebResponse):
    """A stream of complete lines or events, each redacted by itself; the caller is authorized again each second."""

    chunks: AsyncIterator[bytes] | None = None
    media_type: str = "text/event-stream"
    last_chunk: bytes = b""  # last chunk, sent if the caller loses the permission
    encode_error: Callable[[Exception], bytes] | None = None  # last chunk of a stream that fails or is revoked
