"""`/apps/{ns}/{name}/events`: Events and syncs of an Application and its objects, newest first.

In: a request. Out: a page, its live parts. Never: Events of other objects.
"""

from __future__ import annotations

from argosy.features.applications.page_parts.frame import app_of, framed, head_parts
from argosy.features.applications.page_parts.owned_objects import nodes_of, rows_of
from argosy.features.applications.page_parts.timeline import Moment, moments
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest
from argosy.web import page_templates
from argosy.web.event_cache import Told, of_namespaces
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route

MOST = 300


async def events_of(asked: Asked, *, is_fresh: bool = False) -> Told:
    """List Events of the Application, its managed objects and their descendants."""
    app = app_of(asked)
    wanted = {("Application", app.namespace, app.name)}
    if app.destination.is_here:  # Events of its objects are in the destination cluster
        wanted |= {(node.key.kind, node.key.namespace, node.key.name) for node in await nodes_of(asked)}
        wanted |= {(row.key.kind, row.key.namespace, row.key.name) for row in await rows_of(asked)}
    told = await of_namespaces(asked, {each[1] for each in wanted}, is_fresh=is_fresh)
    return Told([each for each in told.events if _about(each) in wanted], told.fault)


def _about(event: Manifest) -> tuple[str, str, str]:
    about = mapping(event.get("involvedObject"))
    return str(about.get("kind") or ""), str(about.get("namespace") or ""), str(about.get("name") or "")


async def _moments(asked: Asked, *, is_fresh: bool = False) -> tuple[tuple[Moment, ...], str]:
    show = "warnings" if asked.query.text("show") == "warnings" else "all"
    told = await events_of(asked, is_fresh=is_fresh)
    return moments(app_of(asked), told.events, show)[:MOST], told.fault


async def events_page(asked: Asked) -> Answer:
    show = "warnings" if asked.query.text("show") == "warnings" else "all"
    found, fault = await _moments(asked, is_fresh=True)
    values = await framed(asked, "events", moments=found, fault=fault, show=show)
    return Page("applications/events.html", values)


async def events_parts(asked: Asked) -> dict[str, str]:
    body = page_templates.part("applications/parts_events.html", "moment_list", *await _moments(asked))
    return {**await head_parts(asked), "moments": body}


ROUTES = (Route("GET", "/apps/{ns}/{name}/events", May("applications", "get", application), events_page, "Events"),)
