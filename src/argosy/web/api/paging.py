"""Pagination of lists, and field selection.

In: a query, sorted items. Out: a document with `items` and, if there are more, their number or a `continue` token.
Never: a token that contains more than a position.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Final

from argosy.errors import UserError
from argosy.web.api.field_selection import parse_field_selection
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter

MAX_PAGE_ITEMS: Final = 1000
DEFAULT_PAGE_ITEMS: Final = 100
LIMIT: Final = QueryParameter(
    "limit", f"Maximum number of items: {DEFAULT_PAGE_ITEMS} by default, at most {MAX_PAGE_ITEMS}.", "integer"
)
CONTINUE: Final = QueryParameter("continue", "Token of the previous page.")
FIELDS: Final = QueryParameter(
    "fields", "Fields to return, such as items.name; with a leading minus, fields to leave out."
)
PAGING: Final = (LIMIT, CONTINUE, FIELDS)
MAX_ARGO_ITEMS: Final = 10_000  # in one response
ARGO_PAGING: Final = (  # of lists that Argo CD also has: complete, unless limited
    QueryParameter("limit", "Maximum number of items.", "integer"),
    QueryParameter("offset", "Number of items to skip.", "integer"),
    FIELDS,
)
SortKey = Callable[[Any], str]


def build_page(
    request: RequestContext,
    items: Sequence[Any],
    sort_key: SortKey,
    *,
    to_wire: Callable[[Any], Any] = lambda item: item,
) -> JsonResponse:
    """`sort_key` orders the items and is the token: the next page starts after it, even if that item was deleted."""
    limit = request.query.get_int("limit", DEFAULT_PAGE_ITEMS, minimum=0, maximum=MAX_PAGE_ITEMS) or DEFAULT_PAGE_ITEMS
    after = _decode_token(request.query.get_text("continue"))
    ordered = sorted(items, key=sort_key)
    remaining = [item for item in ordered if sort_key(item) > after] if after else ordered
    page_items = remaining[:limit]
    metadata: dict[str, Any] = {}
    if len(remaining) > limit:
        metadata = {"continue": _encode_token(sort_key(page_items[-1])), "remainingItemCount": len(remaining) - limit}
    return select_fields(request, {"metadata": metadata, "items": [to_wire(item) for item in page_items]})


def build_argo_page(request: RequestContext, items: Sequence[Any], **metadata: Any) -> JsonResponse:
    """Return a part of one of Argo CD's lists: from `offset`, at most `limit` items."""
    offset, limit = (
        request.query.get_int("offset", 0),
        request.query.get_int("limit", MAX_ARGO_ITEMS, maximum=MAX_ARGO_ITEMS) or MAX_ARGO_ITEMS,
    )
    page_items = items[offset : offset + limit]
    if remaining_count := max(len(items) - offset - len(page_items), 0):
        metadata["remainingItemCount"] = remaining_count  # k8s: name of this field
    return select_fields(request, {"metadata": metadata, "items": page_items})


def select_fields(request: RequestContext, document: Any) -> JsonResponse:
    fields = parse_field_selection(request.query.get_text("fields"))
    return JsonResponse(fields.apply(document) if fields else document)


def _encode_token(position: str) -> str:
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def _decode_token(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise UserError("is not a valid continue token; start again without it", where="continue") from None
