"""`/settings/clusters`: the page of destination clusters.

In: a request. Out: clusters that the caller may see. Never: shows credentials.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from argosy.features.clusters import service
from argosy.features.clusters.connection_state import ClusterStateCache
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.web.caller_application_service import build_service
from argosy.web.objects_of_visible_applications import count_applications_by_server
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import FilteredList, Route
from argosy.web.settings_overview_page import SETTINGS_BREADCRUMB


async def render_clusters_page(states: ClusterStateCache, request: RequestContext) -> PageResponse:
    app_service = build_service(request)
    all_clusters = await service.list_clusters(app_service, with_faulty=True)
    visible_clusters = [item for item in all_clusters if request.is_allowed("clusters", "get", service.rbac_name(item))]
    rows = await asyncio.gather(*(_build_row(request, item, states) for item in visible_clusters))
    values = {
        "title": "Clusters",
        "section": "settings",
        "state": "bad" if any(item["state"] == "Failed" for item in rows) else "",
        "crumbs": [SETTINGS_BREADCRUMB],
        "rows": rows,
        "commands": ["argosy cluster add CONTEXT", "argosy cluster list"],
    }
    return PageResponse("clusters/clusters.html", values)


async def _build_row(request: RequestContext, declared: DeclaredSecret, states: ClusterStateCache) -> dict[str, Any]:
    state, version, _ = await states.get_state(build_service(request), declared)
    server = service.read_server(declared)
    document = service.cluster_to_wire(declared, state, version, (), count_applications_by_server(request)[server])
    return {
        "name": document.get("name") or declared.name,
        "server": server,
        "state": state.status,
        "message": state.message,
        "version": version,
        "namespaces": document.get("namespaces") or [],
        "project": document.get("project") or "",
        "apps": count_applications_by_server(request)[server],
    }


def build_routes(states: ClusterStateCache) -> tuple[Route, ...]:
    handler = partial(render_clusters_page, states)
    return (Route("GET", "/settings/clusters", FilteredList("clusters", "get"), handler, "Clusters, as a page."),)
