"""`/apps/{ns}/{name}/history` and `/rollback`: deployment history, rollback plan, and rollback.

In: a request. Out: pages; a requested rollback. Never: a rollback that the next automated sync would undo.
"""

from __future__ import annotations

from argosy.errors import ArgosyError, UserError
from argosy.features.applications.diff.field_changes import changes, counts
from argosy.features.applications.diff.page import Compared
from argosy.features.applications.page_parts import commits
from argosy.features.applications.page_parts.addresses import of_app
from argosy.features.applications.page_parts.frame import app_of, back_to, framed, head_parts
from argosy.features.applications.page_parts.timeline import entries
from argosy.gitops.application_client.differences import differing
from argosy.gitops.application_client.rollback_plan import check_sources, look_back
from argosy.gitops.application_client.small_changes import (
    entry_to_roll_back_to,
    is_deployed_already,
    roll_back,
    syncs_itself,
)
from argosy.gitops.application_client.sync_checks import check_window
from argosy.web import page_templates
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked, quoted
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route


async def history_page(asked: Asked) -> Answer:
    app = app_of(asked)
    found = entries(app, await commits.past(reader_of(asked), app))
    values = await framed(asked, "history", entries=found)
    return Page("applications/history.html", values)


async def history_parts(asked: Asked) -> dict[str, str]:
    app = app_of(asked)
    found = entries(app, await commits.past(reader_of(asked), app))
    may = asked.may("applications", "sync", asked.thing)
    body = page_templates.part(
        "applications/parts_history.html", "history_table", found, of_app(app.namespace, app.name), may
    )
    return {**await head_parts(asked), "history": body}


async def rollback_page(asked: Asked) -> Answer:
    """Render the plan of a rollback."""
    app, reader = app_of(asked), reader_of(asked)
    entry = entry_to_roll_back_to(app, _number(asked.query.text("id")))
    told = await commits.past(reader, app)
    shown = next(each for each in entries(app, told) if each.id == entry.id)
    values = await framed(
        asked,
        "",
        entry=shown,
        made=await _plan(asked, entry.id),
        is_now=is_deployed_already(app, entry),
        needs_hold=syncs_itself(app),
        may_hold=asked.may("applications", "update", asked.thing),
    )
    return Page("applications/rollback.html", values)


async def _plan(asked: Asked, number: int) -> Compared:
    app, reader = app_of(asked), reader_of(asked)
    try:
        look = await look_back(reader, app, entry_to_roll_back_to(app, number))
    except ArgosyError as error:
        what, _, advice = str(error).partition("; ")
        return Compared(fault=what, advice=advice)
    if not look.is_whole:
        said = next((each.message for each in look.conditions if each.type.is_error), "the comparison failed")
        return Compared(fault=said)
    found = differing(look.comparison, reader.rules.compare.masked_annotations)
    return Compared(changes(app, found), counts(found))


async def rollback(asked: Asked) -> Answer:
    app, form = app_of(asked), await asked.form()
    entry = entry_to_roll_back_to(app, _number(form.text("id")))
    check_window(reader_of(asked), app)
    holds = "hold" in form or syncs_itself(app)
    if holds:
        asked.require("applications", "update", asked.thing)
    reason = form.text("reason").strip() or f"rolled back to {entry.id}"
    check_sources(reader_of(asked), app, entry)
    await roll_back(desk_of(asked), app, entry, prune="prune" in form, hold_reason=reason if holds else None)
    return back_to(asked, "rollback" if holds else "rolled-back", "operation")


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or len(text) > 12:
        raise UserError(f"invalid deployment id {quoted(text)}; choose one from the history")
    return int(text)


GET, SYNC = May("applications", "get", application), May("applications", "sync", application)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}/history", GET, history_page, "Deployment history"),
    Route("GET", "/apps/{ns}/{name}/rollback", GET, rollback_page, "Plan a rollback"),
    Route("POST", "/apps/{ns}/{name}/rollback", SYNC, rollback, "Roll back"),
)
