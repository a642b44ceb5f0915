"""Common template values of every page of an Application: head, tabs, title.

In: a request for an Application. Out: template values, and the live parts of the head. Never: renders HTML except with
the macros that the page uses.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from argosy.features.applications.page_parts import commit_summary_lookup
from argosy.features.applications.page_parts.header import ApplicationHeader, build_header, build_tabs
from argosy.features.applications.page_parts.url_paths import add_query, application_path
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.delay_reasons import describe_delay
from argosy.gitops.cluster_view import health_message_of_causing_object
from argosy.web import page_templates
from argosy.web.caller_application_service import build_reader
from argosy.web.preference_cookies import read_preferences
from argosy.web.request import RequestContext
from argosy.web.responses import RedirectResponse
from argosy.web.status_styles import get_page_state


def get_application(request: RequestContext) -> Application:
    app: Application = request.subject
    return app


def list_permissions(request: RequestContext) -> dict[str, bool]:
    permitted = {
        action: request.is_allowed("applications", action, request.rbac_object)
        for action in ("sync", "override", "update", "delete")
    }
    return {**permitted, "logs": request.is_allowed("logs", "get", request.rbac_object)}


async def build_head(
    request: RequestContext, timeout_seconds: float = commit_summary_lookup.PAGE_WAIT_SECONDS
) -> ApplicationHeader:
    app, reader = get_application(request), build_reader(request)
    commit_summaries = await commit_summary_lookup.fetch_current_commits(
        reader, app, status_summary.read_synced_revisions(app), timeout_seconds
    )
    project = reader.reconciler_settings.projects.get(app.project)
    drift_text = request.drift_texts.describe_drift(app, reader.cache.get)
    resolved_app, cluster_view = reader.reconciler_settings.clusters.resolve_destination(app), request.cluster_view
    delay = describe_delay(app, cluster_view.rules, cluster_view.cache.get, cluster_view.engines, utc_now())
    head = build_header(
        app, project, utc_now(), list_permissions(request), commit_summaries, drift_text, resolved_app, delay
    )
    engines = cluster_view.engines
    engine_arguments = app.annotations, app.namespace
    delivered_by = "" if engines.is_argosy_only(*engine_arguments) else engines.describe_deliverer(*engine_arguments)
    return replace(
        head,
        why=health_message_of_causing_object.explain_health_message(reader.cache.get, head.why),
        delivered=delivered_by,
    )


async def build_page_values(request: RequestContext, tab: str, /, **values: Any) -> dict[str, Any]:
    """`tab` is the current tab; empty for pages outside the tabs."""
    app, head = get_application(request), await build_head(request)
    return {
        "title": app.name,
        "is_live": bool(tab),
        "is_partial": commit_summary_lookup.is_fetching(
            app, status_summary.read_synced_revisions(app)
        ),  # the live stream delivers commits that arrive later
        "section": "apps",
        "state": get_page_state(head.health, head.sync, has_error=head.has_error),
        "crumbs": [("Apps", "/apps"), (app.name, head.base)],
        "head": head,
        "tabs": build_tabs(app, tab, has_logs=head.may["logs"]),
        "here": tab,
        "is_favourite": f"{app.namespace}/{app.name}" in read_preferences(request).get("favourites", "").split("~"),
        **values,
    }


async def render_head_parts(request: RequestContext) -> dict[str, str]:
    """Render the live parts: the head, and the state shown by title and favicon."""
    head = await build_head(request, commit_summary_lookup.LIVE_UPDATE_WAIT_SECONDS)
    state = get_page_state(head.health, head.sync, has_error=head.has_error)
    return {
        "app-head": page_templates.render_macro("applications/parts_head.html", "app_head", head),
        "app-banners": page_templates.render_macro("applications/parts_head.html", "app_banners", head, ""),
        "say": f"{head.name}: {head.health}, {head.sync}",
        "page-state": page_templates.render_macro("parts/page.html", "page_mark", state, head.name),
    }


def redirect_to_application(request: RequestContext, flash_code: str, tab: str = "") -> RedirectResponse:
    """Redirect to a page of the Application with a flash message code."""
    app = get_application(request)
    return RedirectResponse(location=add_query(application_path(app.namespace, app.name, tab), [("said", flash_code)]))
