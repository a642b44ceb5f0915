"""Form actions of an Application: refresh, hold, release, terminate, confirm a deletion, delete.

In: forms. Out: a redirect with a flash message. Never: a change without its user.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.applications.page_parts.frame import app_of, back_to, framed
from argosy.gitops.application.refresh import HARD
from argosy.gitops.application_client import small_changes
from argosy.web.caller_clients import desk_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page, Redirect
from argosy.web.route import May, Route

TABS = ("tree", "resources", "operation", "diff", "events", "history", "parameters", "manifest", "settings", "")


async def refresh(asked: Asked) -> Answer:
    """Request a refresh; the controller runs it, and the live page shows the result."""
    form = await asked.form()
    is_hard = form.text("kind") == HARD
    await small_changes.ask_refresh(desk_of(asked), app_of(asked), is_hard=is_hard)
    if form.text("back") == "list":
        return Redirect(where="/apps?said=refreshed")
    tab = form.text("tab")
    return back_to(asked, "refreshed-hard" if is_hard else "refreshed", tab if tab in TABS else "")


async def hold(asked: Asked) -> Answer:
    form = await asked.form()
    _, has_changed = await small_changes.hold(desk_of(asked), app_of(asked), form.text("reason").strip()[:200])
    return back_to(asked, "held" if has_changed else "no-change")


async def release(asked: Asked) -> Answer:
    _, has_changed = await small_changes.release(desk_of(asked), app_of(asked))
    return back_to(asked, "released" if has_changed else "no-change")


async def terminate(asked: Asked) -> Answer:
    await small_changes.terminate(desk_of(asked), app_of(asked))
    return back_to(asked, "terminated", "operation")


async def confirm(asked: Asked) -> Answer:
    """Confirm only the deletion that the page showed, as another operation may have started since."""
    form = await asked.form()
    await small_changes.confirm_deletion(desk_of(asked), app_of(asked), form.text("since"))
    return back_to(asked, "confirmed", "operation")


async def delete_page(asked: Asked) -> Answer:
    return Page("applications/delete.html", await framed(asked, "", fault=""))


async def delete(asked: Asked) -> Answer:
    app, form = app_of(asked), await asked.form()
    if form.text("sure").strip() != app.name:
        told = f"Nothing was deleted: type the name {app.name} to confirm."
        return Page("applications/delete.html", await framed(asked, "", fault=told), code=400)
    how = form.text("how")
    if how not in ("foreground", "background", "orphan"):
        raise UserError("no deletion mode chosen; nothing was deleted; choose what happens to the resources")
    policy = small_changes.BACKGROUND if how == "background" else small_changes.FOREGROUND
    await small_changes.delete(desk_of(asked), app, cascades=how != "orphan", policy=policy)
    return Redirect(where="/apps?said=deleted")


GET, SYNC = May("applications", "get", application), May("applications", "sync", application)
UPDATE, DELETE = May("applications", "update", application), May("applications", "delete", application)
ROUTES = (
    Route("POST", "/apps/{ns}/{name}/refresh", GET, refresh, "Refresh"),
    Route("POST", "/apps/{ns}/{name}/hold", UPDATE, hold, "Pause automatic sync"),
    Route("POST", "/apps/{ns}/{name}/release", UPDATE, release, "End a hold"),
    Route("POST", "/apps/{ns}/{name}/terminate", SYNC, terminate, "Terminate the running operation"),
    Route("POST", "/apps/{ns}/{name}/confirm", UPDATE, confirm, "Confirm a deletion"),
    Route("GET", "/apps/{ns}/{name}/delete", DELETE, delete_page, "Confirm the deletion of an application"),
    Route("POST", "/apps/{ns}/{name}/delete", DELETE, delete, "Delete"),
)
