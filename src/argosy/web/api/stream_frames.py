"""Frames of API streams, as Argo CD's gateway writes them.

In: documents. Out: bytes, one line or event each; the same bytes for all readers of the same. Never: a Secret.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import orjson

from argosy.gitops.redaction.secret_object_redaction import redact_secrets
from argosy.kube.objects import Manifest
from argosy.web.error_details import describe_error
from argosy.web.request import RequestContext
from argosy.web.responses import StreamResponse

EVENT_STREAM_MEDIA: Final = "text/event-stream"
JSON_LINES_MEDIA: Final = "application/x-ndjson"
STREAM_MEDIA_TYPES: Final = (JSON_LINES_MEDIA, EVENT_STREAM_MEDIA)
HEARTBEAT_SECONDS: Final = 15.0  # seconds
HEARTBEAT_FRAME: Final = b":\n\n"  # heartbeat; a comment that event stream clients ignore
MAX_CACHED_FRAMES: Final = 256  # frames
AnnotationNames = tuple[str, ...]


def accepts_events(request: RequestContext) -> bool:
    return EVENT_STREAM_MEDIA in request.headers.get("accept", "")


def encode_frame(document: Any, *, events: bool, field: str = "result", annotations: AnnotationNames = ()) -> bytes:
    """argo: format of its gateway for browsers (events) and others. `annotations`: names of sensitive annotations."""
    text = orjson.dumps({field: redact_secrets(document, annotations)}, option=orjson.OPT_NON_STR_KEYS)
    return b"data: %s\n\n" % text if events else text + b"\n"


def encode_error_frame(error: Exception, *, events: bool) -> bytes:
    """argo: last frame of a stream that failed."""
    details = describe_error(error)
    document = {
        "grpc_code": details.grpc_code,
        "http_code": details.code,
        "http_status": HTTPStatus(details.code).phrase,
        "message": details.message,
    }
    return encode_frame(document, events=events, field="error")


class StreamFrameCache:
    """Cache of the latest frames by manifest identity."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[int, str, bool, AnnotationNames], tuple[Manifest, bytes]] = OrderedDict()

    def get_frame(
        self, manifest: Manifest, event_type: str, name: str, *, events: bool, annotations: AnnotationNames = ()
    ) -> bytes:
        key = (id(manifest), event_type, events, annotations)
        cached = self._cached.get(key)
        if cached is not None and cached[0] is manifest:
            return cached[1]
        encoded = encode_frame({"type": event_type, name: manifest}, events=events, annotations=annotations)
        self._cached[key] = (manifest, encoded)  # holds the manifest, so that no other object gets its id
        if len(self._cached) > MAX_CACHED_FRAMES:
            self._cached.popitem(last=False)
        return encoded


FRAME_CACHE: Final = StreamFrameCache()


def build_stream(request: RequestContext, chunks: AsyncIterator[bytes]) -> StreamResponse:
    """argo: its gateway labels JSON lines as application/json; we do so only for clients that accept that type."""
    accepted = request.headers.get("accept", "")
    accepts_json = not accepted or "application/json" in accepted
    return StreamResponse(
        chunks,
        media_type=EVENT_STREAM_MEDIA
        if accepts_events(request)
        else "application/json"
        if accepts_json
        else JSON_LINES_MEDIA,
        encode_error=partial(encode_error_frame, events=accepts_events(request)),
    )
