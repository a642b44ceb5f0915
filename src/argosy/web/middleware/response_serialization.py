"""Serializes handler responses: documents to JSON with redacted Secrets, pages to HTML.

In: a response of a handler. Out: its bytes and media type. Never: an unredacted Secret object in a JSON document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from argosy.gitops.redaction.secret_object_redaction import serialize_masked
from argosy.web.responses import BytesResponse, JsonResponse, PageResponse, RedirectResponse, TextResponse, WebResponse

HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
THREAD_THRESHOLD_ITEMS: Final = 50  # list items; longer lists are serialized in a thread


async def serialize_response(
    answer: WebResponse, list_annotations: Callable[[], tuple[str, ...]], render_page: Callable[[PageResponse], str]
) -> tuple[bytes, str]:
    """Serialize a response; long lists in a thread, so that other requests are served meanwhile.

    `list_annotations` returns the annotations that are masked like values of a Secret.
    """
    match answer:
        case JsonResponse():
            write = partial(serialize_masked, answer.document, list_annotations())
            return (await asyncio.to_thread(write) if _is_long(answer.document) else write()), JSON
        case PageResponse():
            return render_page(answer).encode(), HTML
        case TextResponse():
            return answer.text.encode(), answer.media_type
        case BytesResponse():
            return answer.data, answer.media_type
        case RedirectResponse():
            return b"", ""
        case _:
            raise TypeError(type(answer))


def _is_long(document: Any) -> bool:
    items = document.get("items") if isinstance(document, dict) else document
    return isinstance(items, list | tuple) and len(items) > THREAD_THRESHOLD_ITEMS
