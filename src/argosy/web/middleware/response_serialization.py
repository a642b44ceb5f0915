"""Serializes handler responses: documents to JSON with redacted Secrets, pages to HTML.

In: a response of a handler. Out: its bytes and media type. Never: an unredacted Secret object in a JSON document.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from argosy.web.middleware.secret_object_redaction import list_sensitive_annotations, serialize_masked
from argosy.web.responses import BytesResponse, JsonResponse, PageResponse, RedirectResponse, TextResponse, WebResponse
from argosy.web.site_services import Site

HTML: Final = "text/html; charset=utf-8"
JSON: Final = "application/json"
THREAD_THRESHOLD_ITEMS: Final = 50  # list items; longer lists are serialized in a thread


async def serialize_response(
    answer: WebResponse, site: Site, render_page: Callable[[PageResponse], str]
) -> tuple[bytes, str]:
    """Serialize a response; long lists in a thread, so that other requests are served meanwhile."""
    match answer:
        case JsonResponse():
            write = partial(serialize_masked, answer.document, list_sensitive_annotations(site))
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
