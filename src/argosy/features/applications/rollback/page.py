"""`/apps/{ns}/{name}/history` and `/rollback`: deployment history, rollback plan, and rollback.

In: a request. Out: pages; a requested rollback. Never: a rollback that the next automated sync would undo.
"""

from __future__ import annotations

from argosy.errors import ArgosyError, UserError
from argosy.features.applications.diff.page import ComparisonResult
from argosy.features.applications.diff.page_values import build_changes, count_changes
from argosy.features.applications.page_parts import commit_summary_lookup
from argosy.features.applications.page_parts.deployment_history_and_timeline import list_deployment_rows
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    redirect_to_application,
    render_head_parts,
)
from argosy.features.applications.page_parts.url_paths import application_path
from argosy.gitops.application_client.application_actions import (
    choose_rollback_entry,
    is_already_deployed,
    roll_back,
    would_auto_sync,
)
from argosy.gitops.application_client.diff_presentation import list_differing_objects
from argosy.gitops.application_client.rollback_preview import check_entry_sources_permitted, preview_rollback
from argosy.gitops.application_client.sync_checks import check_sync_window
from argosy.web import page_templates
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.request import RequestContext, quote_input
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route


async def render_history_page(request: RequestContext) -> WebResponse:
    app = get_application(request)
    rows = list_deployment_rows(app, await commit_summary_lookup.fetch_deployed_commits(build_reader(request), app))
    values = await build_page_values(request, "history", entries=rows)
    return PageResponse("applications/history.html", values)


async def render_history_parts(request: RequestContext) -> dict[str, str]:
    app = get_application(request)
    rows = list_deployment_rows(app, await commit_summary_lookup.fetch_deployed_commits(build_reader(request), app))
    may_sync = request.is_allowed("applications", "sync", request.rbac_object)
    body = page_templates.render_macro(
        "applications/parts_history.html", "history_table", rows, application_path(app.namespace, app.name), may_sync
    )
    return {**await render_head_parts(request), "history": body}


async def render_rollback_page(request: RequestContext) -> WebResponse:
    """Render the plan of a rollback."""
    app, reader = get_application(request), build_reader(request)
    entry = choose_rollback_entry(app, _read_deployment_id(request.query.get_text("id")))
    commit_summaries = await commit_summary_lookup.fetch_deployed_commits(reader, app)
    row = next(candidate for candidate in list_deployment_rows(app, commit_summaries) if candidate.id == entry.id)
    values = await build_page_values(
        request,
        "",
        entry=row,
        made=await _build_plan(request, entry.id),
        is_now=is_already_deployed(app, entry),
        needs_hold=would_auto_sync(app),
        may_hold=request.is_allowed("applications", "update", request.rbac_object),
    )
    return PageResponse("applications/rollback.html", values)


async def _build_plan(request: RequestContext, deployment_id: int) -> ComparisonResult:
    app, reader = get_application(request), build_reader(request)
    try:
        app_state = await preview_rollback(reader, app, choose_rollback_entry(app, deployment_id))
    except ArgosyError as error:
        problem, _, advice = str(error).partition("; ")
        return ComparisonResult(fault=problem, advice=advice)
    if not app_state.is_complete:
        message = next(
            (condition.message for condition in app_state.conditions if condition.type.is_error),
            "the comparison failed",
        )
        return ComparisonResult(fault=message)
    differing_objects = list_differing_objects(app_state.comparison, reader.reconciler_settings.diff.masked_annotations)
    return ComparisonResult(build_changes(app, differing_objects), count_changes(differing_objects))


async def start_rollback(request: RequestContext) -> WebResponse:
    app, form = get_application(request), await request.read_form()
    entry = choose_rollback_entry(app, _read_deployment_id(form.get_text("id")))
    check_sync_window(build_reader(request), app)
    hold_automated_sync = "hold" in form or would_auto_sync(app)
    if hold_automated_sync:
        request.require_permission("applications", "update", request.rbac_object)
    reason = form.get_text("reason").strip() or f"rolled back to {entry.id}"
    check_entry_sources_permitted(build_reader(request), app, entry)
    await roll_back(
        build_service(request), app, entry, prune="prune" in form, hold_reason=reason if hold_automated_sync else None
    )
    return redirect_to_application(request, "rollback" if hold_automated_sync else "rolled-back", "operation")


def _read_deployment_id(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 12:
        raise UserError(f"invalid deployment id {quote_input(text)}; choose one from the history")
    return int(text)


READ_PERMISSION, SYNC_PERMISSION = (
    RequiresPermission("applications", "get", resolve_application),
    RequiresPermission("applications", "sync", resolve_application),
)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}/history", READ_PERMISSION, render_history_page, "Deployment history"),
    Route("GET", "/apps/{ns}/{name}/rollback", READ_PERMISSION, render_rollback_page, "Plan a rollback"),
    Route("POST", "/apps/{ns}/{name}/rollback", SYNC_PERMISSION, start_rollback, "Roll back"),
)
