"""Frames of API streams, as Argo CD's gateway writes them.

In: documents. Out: bytes, one line or event each; the same bytes for all readers of the same. Never: a Secret.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any, Final

import orjson

from argosy.errors import ArgosyError, UserError
from argosy.kube.objects import Manifest
from argosy.web.middleware.secret_masking import without_secrets
from argosy.web.request import Asked
from argosy.web.responses import Stream

EVENTS: Final = "text/event-stream"
LINES: Final = "application/x-ndjson"
MAKES: Final = (LINES, EVENTS)
BEAT: Final = 15.0  # seconds
SIGN: Final = b":\n\n"  # heartbeat; a comment that event stream clients ignore
KEPT: Final = 256  # frames
Names = tuple[str, ...]


def is_events(asked: Asked) -> bool:
    return EVENTS in asked.headers.get("accept", "")


def frame(document: Any, *, events: bool, word: str = "result", annotations: Names = ()) -> bytes:
    """argo: format of its gateway for browsers (events) and others. `annotations`: names of sensitive annotations."""
    text = orjson.dumps({word: without_secrets(document, annotations)}, option=orjson.OPT_NON_STR_KEYS)
    return b"data: %s\n\n" % text if events else text + b"\n"


def failure(error: ArgosyError, *, events: bool) -> bytes:
    """argo: last frame of a stream that failed."""
    code, name, http = (3, "Bad Request", 400) if isinstance(error, UserError) else (14, "Service Unavailable", 503)
    told = {"grpc_code": code, "http_code": http, "http_status": name, "message": str(error)}
    return frame(told, events=events, word="error")


class Frames:
    """Cache of the latest frames by manifest identity."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str, bool, Names], tuple[Manifest, bytes]] = OrderedDict()

    def of(self, manifest: Manifest, word: str, name: str, *, events: bool, annotations: Names = ()) -> bytes:
        key = (id(manifest), word, events, annotations)
        known = self._kept.get(key)
        if known is not None and known[0] is manifest:
            return known[1]
        made = frame({"type": word, name: manifest}, events=events, annotations=annotations)
        self._kept[key] = (manifest, made)  # holds the manifest, so that no other object gets its id
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made


FRAMES: Final = Frames()


def stream(asked: Asked, chunks: AsyncIterator[bytes]) -> Stream:
    """argo: its gateway labels JSON lines as application/json; we do so only for clients that accept that type."""
    accepted = asked.headers.get("accept", "")
    is_one = not accepted or "application/json" in accepted
    return Stream(chunks, media=EVENTS if is_events(asked) else "application/json" if is_one else LINES)
