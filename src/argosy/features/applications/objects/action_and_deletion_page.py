"""Run an action on an object of an Application, or delete the object.

In: forms. Out: a redirect. Never: acts on an object outside the Application or without permission.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.applications.objects.page import find_object, may_delete, may_run_action, read_request_key
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    redirect_to_application,
)
from argosy.features.applications.page_parts.url_paths import resource_path
from argosy.gitops.application_client.object_operations import delete_object
from argosy.gitops.application_client.resource_actions_and_logs import load_actions
from argosy.gitops.application_client.resource_actions_and_logs import run_action as run
from argosy.web.caller_application_service import build_impersonating_reader, build_reader
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, RedirectResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

OBJECT_PATH = "/apps/{ns}/{name}/r/{group}/{kind}/{rns}/{rname}"


async def run_object_action(request: RequestContext) -> WebResponse:
    app, key, form = get_application(request), read_request_key(request), await request.read_form()
    name = form.get_text("action")
    if not name or not may_run_action(request, key, name):
        raise NotFoundOrForbidden
    _, live, _ = await find_object(request)
    if live is None:
        raise UserError(f"{key.kind}/{key.name} does not exist any more; no action was run")
    reader = build_reader(request)
    await run(build_impersonating_reader(request, app), app, load_actions(reader), live, name, {})
    return RedirectResponse(location=f"{resource_path(app.namespace, app.name, key)}?said=acted")


async def show_delete_page(request: RequestContext) -> WebResponse:
    return await _render_delete_page(request, "")


async def _render_delete_page(request: RequestContext, fault: str, code: int = 200) -> WebResponse:
    app, key = get_application(request), read_request_key(request)
    leaf, live, _ = await find_object(request)
    if live is None or not may_delete(request, key):
        raise NotFoundOrForbidden
    url = resource_path(app.namespace, app.name, key)
    values = await build_page_values(request, "", leaf=leaf, here_url=url, fault=fault)
    return PageResponse("applications/resource_delete.html", values, code=code)


async def delete_live_object(request: RequestContext) -> WebResponse:
    app, key, form = get_application(request), read_request_key(request), await request.read_form()
    if not may_delete(request, key):
        raise NotFoundOrForbidden
    _, live, _ = await find_object(request)
    if live is None:
        raise UserError(f"{key.kind}/{key.name} does not exist any more; nothing was deleted")
    if form.get_text("sure").strip() != key.name:
        return await _render_delete_page(request, f"Nothing was deleted: type the name {key.name} to confirm.", 400)
    mode = form.get_text("how")
    await delete_object(
        build_impersonating_reader(request, app), app, live, orphan=mode == "orphan", force=mode == "force"
    )
    return redirect_to_application(request, "deleted")


READ_PERMISSION = RequiresPermission("applications", "get", resolve_application)
ROUTES = (
    Route("POST", f"{OBJECT_PATH}/action", READ_PERMISSION, run_object_action, "Run an action of an object"),
    Route("GET", f"{OBJECT_PATH}/delete", READ_PERMISSION, show_delete_page, "Confirm the deletion of an object"),
    Route("POST", f"{OBJECT_PATH}/delete", READ_PERMISSION, delete_live_object, "Delete an object"),
)
