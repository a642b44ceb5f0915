"""Frames of streams, as Argo CD's gateway writes them.

In: documents. Out: bytes, a line or an event each; the same bytes for all who follow the same. Never: a Secret in one.
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
SIGN: Final = b":\n\n"  # of life; of no meaning to who reads events
KEPT: Final = 256  # frames
Names = tuple[str, ...]


def is_events(asked: Asked) -> bool:
    return EVENTS in asked.headers.get("accept", "")


def frame(document: Any, *, events: bool, word: str = "result", annotations: Names = ()) -> bytes:
    """argo: what its gateway sends to browsers, and to everybody else. `annotations` are those that are sensitive."""
    text = orjson.dumps({word: without_secrets(document, annotations)}, option=orjson.OPT_NON_STR_KEYS)
    return b"data: %s\n\n" % text if events else text + b"\n"


def failure(error: ArgosyError, *, events: bool) -> bytes:
    """argo: the last frame, where it cannot go on."""
    code, name, http = (3, "Bad Request", 400) if isinstance(error, UserError) else (14, "Service Unavailable", 503)
    told = {"grpc_code": code, "http_code": http, "http_status": name, "message": str(error)}
    return frame(told, events=events, word="error")


class Frames:
    """The newest frames, by the very manifests that they tell of."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str, bool, Names], tuple[Manifest, bytes]] = OrderedDict()

    def of(self, manifest: Manifest, word: str, name: str, *, events: bool, annotations: Names = ()) -> bytes:
        key = (id(manifest), word, events, annotations)
        known = self._kept.get(key)
        if known is not None and known[0] is manifest:
            return known[1]
        made = frame({"type": word, name: manifest}, events=events, annotations=annotations)
        self._kept[key] = (manifest, made)  # with the manifest: as long as it is here no other has its id
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return made


FRAMES: Final = Frames()


def stream(asked: Asked, chunks: AsyncIterator[bytes]) -> Stream:
    """argo: its gateway calls lines of JSON by the name of one document; so is done for who asks for that by name."""
    accepted = asked.headers.get("accept", "")
    is_one = not accepted or "application/json" in accepted
    return Stream(chunks, media=EVENTS if is_events(asked) else "application/json" if is_one else LINES)
