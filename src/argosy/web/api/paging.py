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
from argosy.web.api.field_selection import read_fields
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Parameter

MOST: Final = 1000
USUAL: Final = 100
LIMIT: Final = Parameter("limit", f"Maximum number of items: {USUAL} by default, at most {MOST}.", "integer")
CONTINUE: Final = Parameter("continue", "Token of the previous page.")
FIELDS: Final = Parameter("fields", "Fields to return, such as items.name; with a leading minus, fields to leave out.")
PAGING: Final = (LIMIT, CONTINUE, FIELDS)
ARGO_MOST: Final = 10_000  # in one response
ARGO_PAGING: Final = (  # of lists that Argo CD also has: complete, unless limited
    Parameter("limit", "Maximum number of items.", "integer"),
    Parameter("offset", "Number of items to skip.", "integer"),
    FIELDS,
)
Mark = Callable[[Any], str]


def page(asked: Asked, items: Sequence[Any], mark: Mark, *, tell: Callable[[Any], Any] = lambda each: each) -> Json:
    """`sort_key` orders the items and is the token: the next page starts after it, even if that item was deleted."""
    limit = asked.query.number("limit", USUAL, least=0, most=MOST) or USUAL
    after = _read(asked.query.text("continue"))
    ordered = sorted(items, key=mark)
    left = [each for each in ordered if mark(each) > after] if after else ordered
    shown = left[:limit]
    metadata: dict[str, Any] = {}
    if len(left) > limit:
        metadata = {"continue": _written(mark(shown[-1])), "remainingItemCount": len(left) - limit}
    return chosen(asked, {"metadata": metadata, "items": [tell(each) for each in shown]})


def part(asked: Asked, items: Sequence[Any], **metadata: Any) -> Json:
    """Return a part of one of Argo CD's lists: from `offset`, at most `limit` items."""
    offset, limit = asked.query.number("offset", 0), asked.query.number("limit", ARGO_MOST, most=ARGO_MOST) or ARGO_MOST
    shown = items[offset : offset + limit]
    if left := max(len(items) - offset - len(shown), 0):
        metadata["remainingItemCount"] = left  # k8s: name of this field
    return chosen(asked, {"metadata": metadata, "items": shown})


def chosen(asked: Asked, document: Any) -> Json:
    fields = read_fields(asked.query.text("fields"))
    return Json(fields.of(document) if fields else document)


def _written(mark: str) -> str:
    return base64.urlsafe_b64encode(mark.encode()).decode().rstrip("=")


def _read(token: str) -> str:
    try:
        return base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise UserError("is not a valid continue token; start again without it", where="continue") from None
