"""The page and the REST API of an installation.

In: a Site (what is served) and requests. Out: answers, masked at their last step. Never: answers a request that did not
pass the doors; reaches a cluster but through a desk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argosy.web.middleware.asgi import Entry
    from argosy.web.site import Site


def build(site: Site) -> Entry:
    """The ASGI application. Imported late: no other command waits for a web framework."""
    from argosy.web.middleware.asgi import Entry
    from argosy.web.route_table import TABLE

    return Entry(site, TABLE)
