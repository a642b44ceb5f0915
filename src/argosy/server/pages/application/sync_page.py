"""`/apps/{ns}/{name}/sync`: the plan of a sync, its options, and the sync itself.

In: a request. Out: a page; a sync that was asked for. Never: a sync to another revision by who may not choose one.
"""

from __future__ import annotations

from argosy.desk.applications.requests import sync_operation
from argosy.model.application import Application
from argosy.model.errors import ArgosyError, UnknownRef
from argosy.model.names import ResourceKey
from argosy.server.answers import Answer, Page
from argosy.server.asked import Asked
from argosy.server.behalf import desk_of, reader_of
from argosy.server.pages.application.diff_page import compared
from argosy.server.pages.application.framing import app_of, back_to, framed
from argosy.server.pages.application.panel import (
    PROPAGATIONS,
    REPLACE_WORD,
    choices_of,
    options_of,
    propagation_of,
    wish_of,
)
from argosy.server.resolving import application
from argosy.server.routes import May, Route

# argo: a setting of argocd-cm
OVERRIDE_KEY = "application.sync.requireOverridePrivilegeForRevisionSync"


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
    return Page("application/sync.html", values)


async def sync(asked: Asked) -> Answer:
    app, desk = app_of(asked), desk_of(asked)
    wish = wish_of(app, await asked.form())
    if wish.revision:
        if overrides(asked):
            asked.require("applications", "override", asked.thing)
        await check_revision(asked, app, wish.revision)
    by = await desk.who()
    await desk.revise(app, lambda now: {"operation": sync_operation(now, wish, by)})
    return back_to(asked, "dry-run" if wish.dry_run else "synced", "operation")


def overrides(asked: Asked) -> bool:
    found = asked.site.lookout.cache.get(ResourceKey("", "ConfigMap", asked.site.desk.control, "argocd-cm"))
    return ((found or {}).get("data") or {}).get(OVERRIDE_KEY) == "true"


async def check_revision(asked: Asked, app: Application, ref: str) -> None:
    """argo: one that the repository does not have is refused at once; who cannot look there leaves it open."""
    source = app.sources[0]
    if source.chart:
        return
    try:
        found = reader_of(asked).rules.repositories
        await found.checkout(source.repo_url, ref, project=app.project, tag_prefix=source.tag_prefix)
    except UnknownRef:
        raise
    except ArgosyError:
        return  # the engine may reach what this server does not


ROUTES = (
    Route("GET", "/apps/{ns}/{name}/sync", May("applications", "get", application), sync_page, "What a sync would do"),
    Route("POST", "/apps/{ns}/{name}/sync", May("applications", "sync", application), sync, "Sync"),
)
