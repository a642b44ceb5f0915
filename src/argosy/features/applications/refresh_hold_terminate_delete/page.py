"""Form actions of an Application: refresh, hold, release, terminate, confirm a deletion, delete.

In: forms. Out: a redirect with a flash message. Never: a change without its user.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    redirect_to_application,
)
from argosy.gitops.application.refresh_request_annotations import HARD_REFRESH
from argosy.gitops.application_client import application_actions
from argosy.web.caller_application_service import build_service
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, RedirectResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

RETURN_TABS = ("tree", "resources", "operation", "diff", "events", "history", "parameters", "manifest", "settings", "")


async def request_refresh(request: RequestContext) -> WebResponse:
    """Request a refresh; the controller runs it, and the live page shows the result."""
    form = await request.read_form()
    is_hard = form.get_text("kind") == HARD_REFRESH
    await application_actions.request_refresh(build_service(request), get_application(request), is_hard=is_hard)
    if form.get_text("back") == "list":
        return RedirectResponse(location="/apps?said=refreshed")
    tab = form.get_text("tab")
    return redirect_to_application(
        request, "refreshed-hard" if is_hard else "refreshed", tab if tab in RETURN_TABS else ""
    )


async def hold_application(request: RequestContext) -> WebResponse:
    form = await request.read_form()
    _, has_changed = await application_actions.hold_automated_sync(
        build_service(request), get_application(request), form.get_text("reason").strip()[:200]
    )
    return redirect_to_application(request, "held" if has_changed else "no-change")


async def release_application(request: RequestContext) -> WebResponse:
    _, has_changed = await application_actions.release_hold(build_service(request), get_application(request))
    return redirect_to_application(request, "released" if has_changed else "no-change")


async def terminate_operation(request: RequestContext) -> WebResponse:
    await application_actions.terminate_operation(build_service(request), get_application(request))
    return redirect_to_application(request, "terminated", "operation")


async def confirm_deletion(request: RequestContext) -> WebResponse:
    """Confirm only the deletion that the page showed, as another operation may have started since."""
    form = await request.read_form()
    await application_actions.confirm_deletion(build_service(request), get_application(request), form.get_text("since"))
    return redirect_to_application(request, "confirmed", "operation")


async def render_delete_page(request: RequestContext) -> WebResponse:
    return PageResponse("applications/delete.html", await build_page_values(request, "", fault=""))


async def delete_application(request: RequestContext) -> WebResponse:
    app, form = get_application(request), await request.read_form()
    if form.get_text("sure").strip() != app.name:
        message = f"Nothing was deleted: type the name {app.name} to confirm."
        return PageResponse("applications/delete.html", await build_page_values(request, "", fault=message), code=400)
    mode = form.get_text("how")
    if mode not in ("foreground", "background", "orphan"):
        raise UserError("no deletion mode chosen; nothing was deleted; choose what happens to the resources")
    policy = application_actions.BACKGROUND if mode == "background" else application_actions.FOREGROUND
    await application_actions.delete_application(build_service(request), app, cascades=mode != "orphan", policy=policy)
    return RedirectResponse(location="/apps?said=deleted")


READ_PERMISSION, SYNC_PERMISSION = (
    RequiresPermission("applications", "get", resolve_application),
    RequiresPermission("applications", "sync", resolve_application),
)
UPDATE_PERMISSION, DELETE_PERMISSION = (
    RequiresPermission("applications", "update", resolve_application),
    RequiresPermission("applications", "delete", resolve_application),
)
ROUTES = (
    Route("POST", "/apps/{ns}/{name}/refresh", READ_PERMISSION, request_refresh, "Refresh"),
    Route("POST", "/apps/{ns}/{name}/hold", UPDATE_PERMISSION, hold_application, "Pause automatic sync"),
    Route("POST", "/apps/{ns}/{name}/release", UPDATE_PERMISSION, release_application, "End a hold"),
    Route(
        "POST", "/apps/{ns}/{name}/terminate", SYNC_PERMISSION, terminate_operation, "Terminate the running operation"
    ),
    Route("POST", "/apps/{ns}/{name}/confirm", UPDATE_PERMISSION, confirm_deletion, "Confirm a deletion"),
    Route(
        "GET",
        "/apps/{ns}/{name}/delete",
        DELETE_PERMISSION,
        render_delete_page,
        "Confirm the deletion of an application",
    ),
    Route("POST", "/apps/{ns}/{name}/delete", DELETE_PERMISSION, delete_application, "Delete"),
)
