"""What the buttons of an Application do, one write each: refresh, hold, release, terminate, confirm, delete.

In: forms. Out: a way back to a page that tells what was done. Never: a change that nobody signed.
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
    """Asked for; the engine takes it up, and the page shows it when it has."""
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
    """Only what was seen: another operation may have begun since."""
    form = await asked.form()
    await small_changes.confirm_deletion(desk_of(asked), app_of(asked), form.text("since"))
    return back_to(asked, "confirmed", "operation")


async def delete_page(asked: Asked) -> Answer:
    return Page("applications/delete.html", await framed(asked, "", fault=""))


async def delete(asked: Asked) -> Answer:
    app, form = app_of(asked), await asked.form()
    if form.text("sure").strip() != app.name:
        told = f"Type the name {app.name} to delete it: nothing was deleted."
        return Page("applications/delete.html", await framed(asked, "", fault=told), code=400)
    how = form.text("how")
    if how not in ("foreground", "background", "orphan"):
        raise UserError("choose what becomes of its resources; nothing was deleted")
    policy = small_changes.BACKGROUND if how == "background" else small_changes.FOREGROUND
    await small_changes.delete(desk_of(asked), app, cascades=how != "orphan", policy=policy)
    return Redirect(where="/apps?said=deleted")


GET, SYNC = May("applications", "get", application), May("applications", "sync", application)
UPDATE, DELETE = May("applications", "update", application), May("applications", "delete", application)
ROUTES = (
    Route("POST", "/apps/{ns}/{name}/refresh", GET, refresh, "Look at Git and the cluster anew"),
    Route("POST", "/apps/{ns}/{name}/hold", UPDATE, hold, "Pause automatic sync"),
    Route("POST", "/apps/{ns}/{name}/release", UPDATE, release, "End a hold"),
    Route("POST", "/apps/{ns}/{name}/terminate", SYNC, terminate, "End the operation that runs"),
    Route("POST", "/apps/{ns}/{name}/confirm", UPDATE, confirm, "Allow what asks before it is pruned"),
    Route("GET", "/apps/{ns}/{name}/delete", DELETE, delete_page, "What deletion does"),
    Route("POST", "/apps/{ns}/{name}/delete", DELETE, delete, "Delete"),
)
