"""What a route answers, as values; no framework is needed to make or to test one.

In: –. Out: frozen values. Never: written to a socket as they are: masking is what comes between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Answer:
    code: int = field(default=200, kw_only=True)
    headers: Headers = field(default=(), kw_only=True)
    is_callers_own: bool = field(default=False, kw_only=True)  # made of what was sent alone: no value is masked in it


@dataclass(frozen=True)
class Json(Answer):
    document: Any = None


@dataclass(frozen=True)
class Page(Answer):
    template: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Text(Answer):
    text: str = ""
    media: str = "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Bytes(Answer):
    data: bytes = b""
    media: str = "application/octet-stream"
    is_fixed: bool = False  # the address names the content: it may be kept for ever


@dataclass(frozen=True)
class Redirect(Answer):
    where: str = "/"  # a path of this server
    is_outside: bool = field(default=False, kw_only=True)  # or an address elsewhere: of an identity provider
    code: int = field(default=303, kw_only=True)


@dataclass(frozen=True)
class Stream(Answer):
    """Each chunk is whole: a line, or an event; it is masked as it is. Whoever asked is asked for again each second."""

    chunks: AsyncIterator[bytes] | None = None
    media: str = "text/event-stream"
    farewell: bytes = b""  # the last chunk, where the right to see the next is lost
