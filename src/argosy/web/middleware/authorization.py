"""Authorization: checks the permission that a route requires. "Not found" and "forbidden" are the same response.

In: a request and its route. Out: the request with its subject, or NotFoundOrForbidden. Never: reveals which of the two.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.web.request import Asked, Refused
from argosy.web.route import Filtered, May, Public, Route, SignedIn


class Unknown(Exception):
    """The request requires authentication."""


async def permitted(route: Route, asked: Asked) -> Asked:
    match route.needs:
        case Public():
            return asked
        case SignedIn() | Filtered():
            return _signed_in(asked)
        case May(resource, action, of):
            _signed_in(asked)
            found = await of(asked)
            # checked for missing objects too, so that timing does not reveal whether an object exists
            may = asked.may(resource, found.action or action if found else action, found.thing if found else "")
            if found is None or not may:
                raise Refused
            if found.fault:
                raise found.fault
            return replace(asked, subject=found.read() if found.read else found.subject, thing=found.thing)


def _signed_in(asked: Asked) -> Asked:
    if asked.caller.is_nobody:
        raise Unknown
    return asked


async def still_permitted(route: Route, asked: Asked) -> bool:
    """Check an open stream again, against the current state of its subject."""
    if isinstance(route.needs, Public):
        return True
    if not asked.site.identities.still(asked.caller):
        return False
    try:
        return (await permitted(route, asked)).thing == asked.thing
    except Exception:  # deleted, forbidden or unreadable by now: end the stream
        return False
