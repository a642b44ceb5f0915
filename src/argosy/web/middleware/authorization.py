"""May this caller, of this subject? Absent and forbidden are one answer.

In: a request and what its route needs. Out: the request with its subject, or Refused. Never: says which of the two.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.web.request import Asked, Refused
from argosy.web.route import Filtered, May, Public, Route, SignedIn


class Unknown(Exception):
    """Nobody has shown who they are."""


async def permitted(route: Route, asked: Asked) -> Asked:
    match route.needs:
        case Public():
            return asked
        case SignedIn() | Filtered():
            return _signed_in(asked)
        case May(resource, action, of):
            _signed_in(asked)
            found = await of(asked)
            # what is not there is asked about, too: absence must not be told by how soon it is answered
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
    """Of a stream that is open: asked again each second, about what its subject is now."""
    if isinstance(route.needs, Public):
        return True
    if not asked.site.identities.still(asked.caller):
        return False
    try:
        return (await permitted(route, asked)).thing == asked.thing
    except Exception:  # gone, forbidden, or unreadable by now: nothing more of it is told
        return False
