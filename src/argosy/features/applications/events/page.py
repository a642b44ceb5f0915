"""`/apps/{ns}/{name}/events`: Events and syncs of an Application and its objects, newest first.

In: a request. Out: a page, its live parts. Never: Events of other objects.
"""

from __future__ import annotations

from argosy.features.applications.page_parts.deployment_history_and_timeline import TimelineEvent, list_timeline_events
from argosy.features.applications.page_parts.project_filtered_application_objects import (
    list_permitted_nodes,
    list_permitted_rows,
)
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    render_head_parts,
)
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.web import page_templates
from argosy.web.event_cache import EventListing
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

MAX_TIMELINE_EVENTS = 300


async def list_application_events(request: RequestContext, *, is_fresh: bool = False) -> EventListing:
    """List Events of the Application, its managed objects and their descendants."""
    app = get_application(request)
    objects = {("Application", app.namespace, app.name)}
    if app.destination.is_in_cluster:  # Events of its objects are in the destination cluster
        objects |= {(node.key.kind, node.key.namespace, node.key.name) for node in await list_permitted_nodes(request)}
        objects |= {(row.key.kind, row.key.namespace, row.key.name) for row in await list_permitted_rows(request)}
    event_listing = await request.events.list_namespace_events({item[1] for item in objects}, is_fresh=is_fresh)
    return EventListing(
        [item for item in event_listing.events if _read_involved_object(item) in objects], event_listing.error
    )


def _read_involved_object(event: Manifest) -> tuple[str, str, str]:
    involved_object = as_mapping(event.get("involvedObject"))
    return (
        str(involved_object.get("kind") or ""),
        str(involved_object.get("namespace") or ""),
        str(involved_object.get("name") or ""),
    )


async def _list_timeline(request: RequestContext, *, is_fresh: bool = False) -> tuple[tuple[TimelineEvent, ...], str]:
    show = "warnings" if request.query.get_text("show") == "warnings" else "all"
    event_listing = await list_application_events(request, is_fresh=is_fresh)
    return list_timeline_events(get_application(request), event_listing.events, show)[
        :MAX_TIMELINE_EVENTS
    ], event_listing.error


async def render_events_page(request: RequestContext) -> WebResponse:
    show = "warnings" if request.query.get_text("show") == "warnings" else "all"
    timeline_events, fault = await _list_timeline(request, is_fresh=True)
    values = await build_page_values(request, "events", moments=timeline_events, fault=fault, show=show)
    return PageResponse("applications/events.html", values)


async def render_events_parts(request: RequestContext) -> dict[str, str]:
    body = page_templates.render_macro("applications/parts_events.html", "moment_list", *await _list_timeline(request))
    return {**await render_head_parts(request), "moments": body}


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/events",
        RequiresPermission("applications", "get", resolve_application),
        render_events_page,
        "Events",
    ),
)
