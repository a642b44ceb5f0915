"""`/apps/plan`: plan and run a sync or refresh of several Applications.

In: names of selected Applications. Out: a plan; requested operations. Never: an Application without permission.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from argosy.errors import ArgosyError, UserError
from argosy.features.applications.list.sync_delay_reasons import add_delay_reason
from argosy.features.applications.page_parts.url_paths import application_path
from argosy.gitops.application import Application
from argosy.gitops.application_client.application_actions import request_refresh
from argosy.gitops.application_client.sync_checks import check_sync_window
from argosy.gitops.application_client.sync_operation_builder import SyncFlags, build_operation_from_flags
from argosy.gitops.cluster_view.health_message_of_causing_object import explain_health_message
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.requested_application_lookup import (
    build_resolved_application,
    find_application_manifest,
    get_application_rbac_name,
    read_application_or_none,
)
from argosy.web.responses import PageResponse, RedirectResponse, WebResponse
from argosy.web.route import FilteredList, Route

MAX_APPLICATIONS = 200
MAX_CONCURRENT_REQUESTS = 8
RBAC_ACTION_BY_OPERATION = {"sync": "sync", "refresh": "get"}  # argo: the RBAC action that each needs


@dataclass(frozen=True, slots=True)
class PlannedApplication:
    text: str
    url: str
    sync: str
    health: str
    why: str
    differing: int
    refusal: str = ""  # the reason why it is skipped


def list_selected_applications(request: RequestContext, form: QueryParameters, action: str) -> list[Application]:
    """List the selected Applications that exist and that the caller may act on; the others are left out."""
    apps = []
    for text in dict.fromkeys(form.get_all("app")):
        namespace, _, name = text.partition("/")
        manifest = find_application_manifest(request, namespace, name)
        if manifest is None:
            continue
        lookup = build_resolved_application(request, manifest)
        is_allowed = request.is_allowed("applications", "get", lookup.rbac_object) and request.is_allowed(
            "applications", action, lookup.rbac_object
        )
        if is_allowed and (app := read_application_or_none(manifest)) is not None:
            apps.append(app)
    return apps[:MAX_APPLICATIONS]


def read_operation(form: QueryParameters) -> str:
    operation = form.get_text("do")
    if operation not in RBAC_ACTION_BY_OPERATION:
        raise UserError("no action chosen; choose SYNC or REFRESH, and select applications")
    return operation


async def render_plan_page(request: RequestContext) -> WebResponse:
    operation = read_operation(request.query)
    apps = list_selected_applications(request, request.query, RBAC_ACTION_BY_OPERATION[operation])
    planned = [
        _build_planned_application(request, app, _find_refusal(request, app) if operation == "sync" else "")
        for app in apps
    ]
    left_out = len(request.query.get_all("app")) - len(apps)
    return PageResponse("applications/plan.html", _build_page_values(operation, planned, left_out=left_out))


def _build_page_values(
    operation: str, planned: list[PlannedApplication], *, left_out: int = 0, done: int = 0, attempted: int = 0
) -> dict[str, Any]:
    """`attempted` is the number of Applications that were tried, 0 before; `planned` are then those that failed."""
    return {
        "title": f"{operation.upper()} {attempted or len(planned)} applications",
        "section": "apps",
        "state": "warn" if attempted else "",
        "crumbs": [("Apps", "/apps"), ("Plan", "")],
        "deed": operation,
        "planned": planned,
        "left_out": left_out,
        "ready": len(planned) if attempted else sum(not entry.refusal for entry in planned),
        "done": done,
        "of": attempted,
    }


def _find_refusal(request: RequestContext, app: Application) -> str:
    try:
        check_sync_window(build_reader(request), app)
        build_operation_from_flags(app, SyncFlags(), "")
    except ArgosyError as error:
        return _first_clause(error)
    return ""


def _first_clause(error: Exception) -> str:
    return str(error).partition("; ")[0]


def _build_planned_application(request: RequestContext, app: Application, refusal: str) -> PlannedApplication:
    row = request.cluster_view.find_row(app.namespace, app.name)
    url = application_path(app.namespace, app.name)
    if row is None:
        return PlannedApplication(f"{app.namespace}/{app.name}", url, "Unknown", "Unknown", "", 0, refusal)
    row = add_delay_reason(request.cluster_view, row)
    mask = request.masks.get_mask_for_application(f"{app.namespace}/{app.name}")
    reason, refusal = (
        mask.mask_text(explain_health_message(request.cluster_view.cache.get, row.why)),
        mask.mask_text(refusal),
    )
    return PlannedApplication(f"{app.namespace}/{app.name}", url, row.sync, row.health, reason, row.differing, refusal)


async def run_plan(request: RequestContext) -> WebResponse:
    form = await request.read_form()
    operation = read_operation(form)
    apps = list_selected_applications(request, form, RBAC_ACTION_BY_OPERATION[operation])
    if not apps:
        raise UserError("none of the selected applications exists, or you may not change them; choose again")
    wish = SyncFlags(prune="prune" in form, dry_run="dry_run" in form, only_out_of_sync="only_out_of_sync" in form)
    semaphore = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    async def run_one(app: Application) -> str:
        async with semaphore:
            try:
                is_sync = operation == "sync"
                await (
                    _request_sync(request, app, wish)
                    if is_sync
                    else request_refresh(build_service(request), app, is_hard=False)
                )
            except ArgosyError as error:
                return _first_clause(error)
            return ""

    errors = await asyncio.gather(*map(run_one, apps))
    for app, error_text in zip(apps, errors, strict=True):
        request.add_audit_entry(
            get_application_rbac_name(request, app.project, app.namespace, app.name), 409 if error_text else 303
        )
    failed = [
        _build_planned_application(request, app, error_text)
        for app, error_text in zip(apps, errors, strict=True)
        if error_text
    ]
    if failed:
        done = len(apps) - len(failed)
        return PageResponse(
            "applications/plan.html", _build_page_values(operation, failed, done=done, attempted=len(apps)), code=409
        )
    return RedirectResponse(location=f"/apps?said={'synced' if operation == 'sync' else 'refreshed'}-many")


async def _request_sync(request: RequestContext, app: Application, wish: SyncFlags) -> None:
    check_sync_window(build_reader(request), app)
    service = build_service(request)
    by = await service.find_user()
    await service.patch_application(app, lambda current: {"operation": build_operation_from_flags(current, wish, by)})


LIST_PERMISSION = FilteredList("applications", "get")
ROUTES = (
    Route("GET", "/apps/plan", LIST_PERMISSION, render_plan_page, "Plan a sync or refresh of several applications"),
    Route("POST", "/apps/plan", LIST_PERMISSION, run_plan, "Sync or refresh several applications"),
)
