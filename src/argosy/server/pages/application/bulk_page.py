"""`/apps/plan`: sync or refresh of several Applications, shown before it is done.

In: names that were ticked. Out: a plan; what was asked for of each. Never: one that the caller may not touch.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from argosy.desk.applications.desk import now
from argosy.desk.applications.requests import SyncWish, sync_operation
from argosy.model import annotations as names
from argosy.model.application import Application
from argosy.model.errors import ArgosyError, UserError
from argosy.report import events
from argosy.server.answers import Answer, Page, Redirect
from argosy.server.asked import Asked, Query
from argosy.server.behalf import desk_of
from argosy.server.pages.application.addresses import of_app
from argosy.server.resolving import application_manifest, found_application, readable
from argosy.server.routes import Filtered, Route

MOST = 200
DEEDS = {"sync": "sync", "refresh": "get"}  # argo: what each needs


@dataclass(frozen=True, slots=True)
class Planned:
    text: str
    url: str
    sync: str
    health: str
    why: str
    differing: int
    refusal: str = ""  # why it will be left out


def chosen(asked: Asked, form: Query, action: str) -> list[Application]:
    """Those that are there and that the caller may so touch; others are left out, as if they were not there."""
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
        raise UserError("choose SYNC or REFRESH, and the applications that are meant")
    return deed


async def plan_page(asked: Asked) -> Answer:
    deed = deed_of(asked.query)
    apps = chosen(asked, asked.query, DEEDS[deed])
    planned = [_planned(asked, app, deed) for app in apps]
    values = {
        "title": f"{deed.upper()} {len(planned)} applications",
        "section": "apps",
        "state": "",
        "crumbs": [("Apps", "/apps"), ("Plan", "")],
        "deed": deed,
        "planned": planned,
        "left_out": len(asked.query.all("app")) - len(apps),
        "ready": sum(not each.refusal for each in planned),
    }
    return Page("application/plan.html", values)


def _planned(asked: Asked, app: Application, deed: str) -> Planned:
    row = asked.site.lookout.row(app.namespace, app.name)
    refusal = ""
    if deed == "sync":
        try:
            sync_operation(app, SyncWish(), "")
        except ArgosyError as error:
            refusal = str(error).partition("; ")[0]
    url = of_app(app.namespace, app.name)
    if row is None:
        return Planned(f"{app.namespace}/{app.name}", url, "Unknown", "Unknown", "", 0, refusal)
    return Planned(f"{app.namespace}/{app.name}", url, row.sync, row.health, row.why, row.differing, refusal)


async def carry_out(asked: Asked) -> Answer:
    form = await asked.form()
    deed = deed_of(form)
    apps, done = chosen(asked, form, DEEDS[deed]), 0
    wish = SyncWish(prune="prune" in form, dry_run="dry_run" in form, only_out_of_sync="only_out_of_sync" in form)
    for app in apps:
        try:
            await (_sync(asked, app, wish) if deed == "sync" else _refresh(asked, app))
            done += 1
        except ArgosyError:
            continue  # the plan told which; the list shows the rest
    if not done:
        raise UserError("none of them could be taken up; see why in the plan")
    some = "" if done == len(apps) else "-some"
    return Redirect(where=f"/apps?said={'synced' if deed == 'sync' else 'refreshed'}-many{some}")


async def _sync(asked: Asked, app: Application, wish: SyncWish) -> None:
    desk = desk_of(asked)
    by = await desk.who()
    await desk.revise(app, lambda current: {"operation": sync_operation(current, wish, by)})


async def _refresh(asked: Asked, app: Application) -> None:
    desk = desk_of(asked)
    stamp = datetime.now(UTC).isoformat(timespec="microseconds")
    wanted = {names.REFRESH: "normal", names.REFRESH_TIMESTAMP: stamp}
    await desk.revise(app, lambda _: {"metadata": {"annotations": wanted}})
    await desk.record(events.refreshed(app, at=now(), by=await desk.who(), is_hard=False))


NEEDS = Filtered("applications", "get")
ROUTES = (
    Route("GET", "/apps/plan", NEEDS, plan_page, "What a change of several would do"),
    Route("POST", "/apps/plan", NEEDS, carry_out, "Sync or refresh several"),
)
