"""`/apps/{ns}/{name}/sync`: plan a sync, choose its options, start it.

In: a request. Out: a page; a requested sync. Never: syncs another revision without the permission to override.
"""

from __future__ import annotations

from argosy.features.applications.diff.page import compared
from argosy.features.applications.page_parts.frame import app_of, back_to, framed
from argosy.features.applications.sync.panel import (
    PROPAGATIONS,
    REPLACE_WORD,
    choices_of,
    options_of,
    propagation_of,
    wish_of,
)
from argosy.gitops.application_client.sync_checks import check_refs, check_window, needs_override
from argosy.gitops.application_client.sync_requests import sync_operation
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import May, Route


async def sync_page(asked: Asked) -> Answer:
    app, query = app_of(asked), asked.query
    ref = query.text("revision").strip()
    made = await compared(reader_of(asked), app, (ref,) if ref else ())
    own = app.sources[0].ref or "HEAD" if len(app.sources) == 1 else ""
    values = await framed(
        asked,
        "",
        made=made,
        revision=ref or own,
        own=own,
        has_one_source=len(app.sources) == 1,
        options=options_of(app),
        propagation=propagation_of(app),
        propagations=PROPAGATIONS,
        choices=choices_of(app, query.all("resource")),
        replace_word=REPLACE_WORD,
        prunes=bool(app.policy.automated and app.policy.automated.prune),
        prune_asked="prune" in query,
    )
    return Page("applications/sync.html", values)


async def sync(asked: Asked) -> Answer:
    app, desk = app_of(asked), desk_of(asked)
    wish = wish_of(app, await asked.form())
    reader, refs = reader_of(asked), (wish.revision,) if wish.revision else ()
    if needs_override(reader, app, refs):
        asked.require("applications", "override", asked.thing)
    check_window(reader, app)
    await check_refs(reader, app, refs)
    by = await desk.who()
    await desk.revise(app, lambda now: {"operation": sync_operation(now, wish, by)})
    return back_to(asked, "dry-run" if wish.dry_run else "synced", "operation")


ROUTES = (
    Route("GET", "/apps/{ns}/{name}/sync", May("applications", "get", application), sync_page, "Plan a sync"),
    Route("POST", "/apps/{ns}/{name}/sync", May("applications", "sync", application), sync, "Sync"),
)
