"""Pages of a list, and the parts of each item that are wanted.

In: a query, items in their order. Out: a document with `items` and, where there is more, how much or `continue`.
Never: a token that says more than a place.
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
LIMIT: Final = Parameter("limit", f"At most so many items: {USUAL} where it is not given, {MOST} at most.", "integer")
CONTINUE: Final = Parameter("continue", "Go on after the page that gave this token.")
FIELDS: Final = Parameter("fields", "Paths that are wanted, such as items.name; with a minus, all but those.")
PAGING: Final = (LIMIT, CONTINUE, FIELDS)
ARGO_MOST: Final = 10_000  # in one answer
ARGO_PAGING: Final = (  # of lists that Argo CD has, too: whole, unless less is asked for
    Parameter("limit", "At most so many.", "integer"),
    Parameter("offset", "So many are left out at the beginning.", "integer"),
    FIELDS,
)
Mark = Callable[[Any], str]


def page(asked: Asked, items: Sequence[Any], mark: Mark, *, tell: Callable[[Any], Any] = lambda each: each) -> Json:
    """`mark` orders the items, and is told as the token: a page goes on after it, also where that item is gone."""
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
    """Of one of Argo CD's lists: from `offset` on, `limit` at most."""
    offset, limit = asked.query.number("offset", 0), asked.query.number("limit", ARGO_MOST, most=ARGO_MOST) or ARGO_MOST
    shown = items[offset : offset + limit]
    if left := max(len(items) - offset - len(shown), 0):
        metadata["remainingItemCount"] = left  # k8s: its word
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
        raise UserError("is no token of this list; begin again without it", where="continue") from None
