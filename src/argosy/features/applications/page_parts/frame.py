"""Common template values of every page of an Application: head, tabs, title.

In: a request for an Application. Out: template values, and the live parts of the head. Never: renders HTML except with
the macros that the page uses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.features.applications.page_parts import commits
from argosy.features.applications.page_parts.addresses import of_app, with_query
from argosy.features.applications.page_parts.header import Header, header, tabs
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.delays import describe_delay
from argosy.gitops.application_client.drift_attribution import Doings
from argosy.gitops.cluster_view import health_causes
from argosy.web import page_templates
from argosy.web.caller_clients import reader_of
from argosy.web.middleware.page_context import preferences
from argosy.web.request import Asked
from argosy.web.responses import Redirect
from argosy.web.status_styles import page_state


def app_of(asked: Asked) -> Application:
    app: Application = asked.subject
    return app


def permissions(asked: Asked) -> dict[str, bool]:
    found = {each: asked.may("applications", each, asked.thing) for each in ("sync", "override", "update", "delete")}
    return {**found, "logs": asked.may("logs", "get", asked.thing)}


async def head_of(asked: Asked, seconds: float = commits.SECONDS) -> Header:
    app, reader = app_of(asked), reader_of(asked)
    told = await commits.current(reader, app, summary.revisions(app), seconds)
    project = reader.rules.projects.get(app.project)
    counted = asked.site.part(Doings).told(app, reader.cache.get)
    placed, lookout = reader.rules.clusters.placed(app), asked.site.lookout
    delay = describe_delay(app, lookout.rules, lookout.cache.get, lookout.engines, clock())
    found = header(app, project, clock(), permissions(asked), told, counted, placed, delay)
    engines = lookout.engines
    whose = app.annotations, app.namespace
    delivered = "" if engines.is_usual(*whose) else engines.told(*whose)
    return replace(found, why=health_causes.told(reader.cache.get, found.why), delivered=delivered)


async def framed(asked: Asked, here: str, **values: Any) -> dict[str, Any]:
    """`tab` is the current tab; empty for pages outside the tabs."""
    app, head = app_of(asked), await head_of(asked)
    return {
        "title": app.name,
        "is_live": bool(here),
        "is_partial": commits.is_awaited(
            app, summary.revisions(app)
        ),  # the live stream delivers commits that arrive later
        "section": "apps",
        "state": page_state(head.health, head.sync, has_error=head.has_error),
        "crumbs": [("Apps", "/apps"), (app.name, head.base)],
        "head": head,
        "tabs": tabs(app, here, has_logs=head.may["logs"]),
        "here": here,
        "is_favourite": f"{app.namespace}/{app.name}" in preferences(asked).get("favourites", "").split("~"),
        **values,
    }


async def head_parts(asked: Asked) -> dict[str, str]:
    """Render the live parts: the head, and the state shown by title and favicon."""
    head = await head_of(asked, commits.PATIENCE)
    state = page_state(head.health, head.sync, has_error=head.has_error)
    return {
        "app-head": page_templates.part("applications/parts_head.html", "app_head", head),
        "app-banners": page_templates.part("applications/parts_head.html", "app_banners", head, ""),
        "say": f"{head.name}: {head.health}, {head.sync}",
        "page-state": page_templates.part("parts/page.html", "page_mark", state, head.name),
    }


def back_to(asked: Asked, said: str, tab: str = "") -> Redirect:
    """Redirect to a page of the Application with a flash message code."""
    app = app_of(asked)
    return Redirect(where=with_query(of_app(app.namespace, app.name, tab), [("said", said)]))
