"""`/settings/clusters`: where Applications are delivered to.

In: a request. Out: clusters that the caller may see. Never: what lets somebody into one.
"""

from __future__ import annotations

import asyncio
from typing import Any

from argosy.desk.connections import clusters
from argosy.desk.connections.declared import Declared
from argosy.web.caller_clients import desk_of
from argosy.web.pages.settings import CRUMB
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Filtered, Route
from argosy.web.views.owned_objects import delivered_to


async def page(asked: Asked) -> Page:
    desk = desk_of(asked)
    known = await clusters.all_clusters(desk, with_faulty=True)
    found = [each for each in known if asked.may("clusters", "get", clusters.thing_of(each))]
    rows = await asyncio.gather(*(_row(asked, each) for each in found))
    values = {
        "title": "Clusters",
        "section": "settings",
        "state": "bad" if any(each["state"] == "Failed" for each in rows) else "",
        "crumbs": [CRUMB],
        "rows": rows,
        "commands": ["argosy cluster add CONTEXT", "argosy cluster list"],
    }
    return Page("settings_clusters.html", values)


async def _row(asked: Asked, declared: Declared) -> dict[str, Any]:
    state, version = await asked.site.part(clusters.States).of(desk_of(asked), declared)
    server = clusters.server_of(declared)
    told = clusters.document(declared, state, version, delivered_to(asked)[server])
    return {
        "name": told.get("name") or declared.name,
        "server": server,
        "state": state.status,
        "message": state.message,
        "version": version,
        "namespaces": told.get("namespaces") or [],
        "project": told.get("project") or "",
        "apps": delivered_to(asked)[server],
    }


ROUTES = (Route("GET", "/settings/clusters", Filtered("clusters", "get"), page, "Clusters, as a page."),)
