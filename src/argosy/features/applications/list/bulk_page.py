"""`/apps/plan`: plan and run a sync or refresh of several Applications.

In: names of selected Applications. Out: a plan; requested operations. Never: an Application without permission.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from argosy.errors import ArgosyError, UserError
from argosy.features.applications.list.delayed_rows import add_delay
from argosy.features.applications.page_parts.addresses import of_app
from argosy.gitops.application import Application
from argosy.gitops.application_client.small_changes import ask_refresh
from argosy.gitops.application_client.sync_checks import check_window
from argosy.gitops.application_client.sync_requests import SyncWish, sync_operation
from argosy.gitops.cluster_view.health_causes import told
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import application_manifest, application_name, found_application, readable
from argosy.web.request import Asked, Query
from argosy.web.responses import Answer, Page, Redirect
from argosy.web.route import Filtered, Route

MOST = 200
AT_ONCE = 8
DEEDS = {"sync": "sync", "refresh": "get"}  # argo: the RBAC action that each needs


@dataclass(frozen=True, slots=True)
class Planned:
    text: str
    url: str
    sync: str
    health: str
    why: str
    differing: int
    refusal: str = ""  # the reason why it is skipped


def chosen(asked: Asked, form: Query, action: str) -> list[Application]:
    """List the selected Applications that exist and that the caller may act on; the others are left out."""
    found = []
    for text in dict.fromkeys(form.all("app")):
        namespace, _, name = text.partition("/")
        manifest = application_manifest(asked, namespace, name)
        if manifest is None:
            continue
        there = found_application(asked, manifest)
        allowed = asked.may("applications", "get", there.thing) and asked.may("applications", action, there.thing)
        if allowed and (app := readable(manifest)) is not None:
            found.append(app)
    return found[:MOST]


def deed_of(form: Query) -> str:
    deed = form.text("do")
    if deed not in DEEDS:
        raise UserError("no action chosen; choose SYNC or REFRESH, and select applications")
    return deed


async def plan_page(asked: Asked) -> Answer:
    deed = deed_of(asked.query)
    apps = chosen(asked, asked.query, DEEDS[deed])
    planned = [_planned(asked, app, _refusal(asked, app) if deed == "sync" else "") for app in apps]
    left_out = len(asked.query.all("app")) - len(apps)
    return Page("applications/plan.html", _values(deed, planned, left_out=left_out))


def _values(deed: str, planned: list[Planned], *, left_out: int = 0, done: int = 0, of: int = 0) -> dict[str, Any]:
    """`attempted` is the number of Applications that were tried, 0 before; `planned` are then those that failed."""
    return {
        "title": f"{deed.upper()} {of or len(planned)} applications",
        "section": "apps",
        "state": "warn" if of else "",
        "crumbs": [("Apps", "/apps"), ("Plan", "")],
        "deed": deed,
        "planned": planned,
        "left_out": left_out,
        "ready": len(planned) if of else sum(not each.refusal for each in planned),
        "done": done,
        "of": of,
    }


def _refusal(asked: Asked, app: Application) -> str:
    try:
        check_window(reader_of(asked), app)
        sync_operation(app, SyncWish(), "")
    except ArgosyError as error:
        return _first(error)
    return ""


def _first(error: Exception) -> str:
    return str(error).partition("; ")[0]


def _planned(asked: Asked, app: Application, refusal: str) -> Planned:
    row = asked.site.lookout.row(app.namespace, app.name)
    url = of_app(app.namespace, app.name)
    if row is None:
        return Planned(f"{app.namespace}/{app.name}", url, "Unknown", "Unknown", "", 0, refusal)
    row = add_delay(asked.site.lookout, row)
    mask = masks_of(asked).by_name(f"{app.namespace}/{app.name}")
    why, refusal = mask.hide_text(told(asked.site.lookout.cache.get, row.why)), mask.hide_text(refusal)
    return Planned(f"{app.namespace}/{app.name}", url, row.sync, row.health, why, row.differing, refusal)


async def carry_out(asked: Asked) -> Answer:
    form = await asked.form()
    deed = deed_of(form)
    apps = chosen(asked, form, DEEDS[deed])
    if not apps:
        raise UserError("none of the selected applications exists, or you may not change them; choose again")
    wish = SyncWish(prune="prune" in form, dry_run="dry_run" in form, only_out_of_sync="only_out_of_sync" in form)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(app: Application) -> str:
        async with gate:
            try:
                is_sync = deed == "sync"
                await (_sync(asked, app, wish) if is_sync else ask_refresh(desk_of(asked), app, is_hard=False))
            except ArgosyError as error:
                return _first(error)
            return ""

    said = await asyncio.gather(*map(one, apps))
    for app, why in zip(apps, said, strict=True):
        asked.noted(application_name(asked, app.project, app.namespace, app.name), 409 if why else 303)
    failed = [_planned(asked, app, why) for app, why in zip(apps, said, strict=True) if why]
    if failed:
        done = len(apps) - len(failed)
        return Page("applications/plan.html", _values(deed, failed, done=done, of=len(apps)), code=409)
    return Redirect(where=f"/apps?said={'synced' if deed == 'sync' else 'refreshed'}-many")


async def _sync(asked: Asked, app: Application, wish: SyncWish) -> None:
    check_window(reader_of(asked), app)
    desk = desk_of(asked)
    by = await desk.who()
    await desk.revise(app, lambda current: {"operation": sync_operation(current, wish, by)})


NEEDS = Filtered("applications", "get")
ROUTES = (
    Route("GET", "/apps/plan", NEEDS, plan_page, "Plan a sync or refresh of several applications"),
    Route("POST", "/apps/plan", NEEDS, carry_out, "Sync or refresh several applications"),
)
