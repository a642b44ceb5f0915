"""`/settings/clusters`: the page of destination clusters.

In: a request. Out: clusters that the caller may see. Never: shows credentials.
"""

from __future__ import annotations

import asyncio
from typing import Any

from argosy.features.clusters import service
from argosy.gitops.application_client.declared_objects import Declared
from argosy.web.caller_clients import desk_of
from argosy.web.owned_objects import delivered_to
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Filtered, Route
from argosy.web.settings_page import CRUMB


async def page(asked: Asked) -> Page:
    desk = desk_of(asked)
    known = await service.all_clusters(desk, with_faulty=True)
    found = [each for each in known if asked.may("clusters", "get", service.thing_of(each))]
    rows = await asyncio.gather(*(_row(asked, each) for each in found))
    values = {
        "title": "Clusters",
        "section": "settings",
        "state": "bad" if any(each["state"] == "Failed" for each in rows) else "",
        "crumbs": [CRUMB],
        "rows": rows,
        "commands": ["argosy cluster add CONTEXT", "argosy cluster list"],
    }
    return Page("clusters/clusters.html", values)


async def _row(asked: Asked, declared: Declared) -> dict[str, Any]:
    state, version = await asked.site.part(service.States).of(desk_of(asked), declared)
    server = service.server_of(declared)
    told = service.document(declared, state, version, delivered_to(asked)[server])
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
