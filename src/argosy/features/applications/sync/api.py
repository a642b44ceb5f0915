"""API for operations of Applications: sync, rollback, terminate.

In: a request. Out: the Application with the requested operation. Never: waits for its end; starts one that a sync
window, a policy or a running operation forbids.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import PolicyError, UserError
from argosy.features.applications.read.api import PLACE
from argosy.features.applications.request_target import of_body
from argosy.features.applications.sync.request import has_manifests, refuse_manifests, revisions_of, sync_of
from argosy.gitops.application import Application
from argosy.gitops.application_client.rollback_plan import check_sources
from argosy.gitops.application_client.small_changes import entry_to_roll_back_to, roll_back, terminate
from argosy.gitops.application_client.sync_checks import check_refs, check_window, needs_override
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body
from argosy.web.caller_clients import desk_of, reader_of, until_seen
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import May, Route


def declined(error: PolicyError) -> Json:
    """argo: 400 with the gRPC code of a failed precondition."""
    return Json({"error": f"{error}", "code": 9, "message": f"{error}"}, code=400)


async def synced(asked: Asked) -> Json:
    app: Application = asked.subject
    body, reader, desk = Body(await asked.mapping()), reader_of(asked), desk_of(asked)
    refs = revisions_of(app, body) or ((body.text("revision"),) if body.text("revision") else ())
    if has_manifests(body) or needs_override(reader, app, refs):
        asked.require("applications", "override", asked.thing)
    if has_manifests(body):
        refuse_manifests("manifests")
    check_window(reader, app)
    await check_refs(reader, app, refs)
    by = asked.caller.shown_name

    def make(now: Application) -> dict[str, Any]:
        if now.project != app.project:
            raise UserError("the application was moved to another project; try again", where=app.name)
        return {"operation": sync_of(now, body, by)}

    try:
        after = await desk.revise(app, make)
    except PolicyError as error:
        return declined(error)
    await until_seen(asked, after.wire)
    return Json(dict(after.wire))


async def rolled_back(asked: Asked) -> Json:
    app: Application = asked.subject
    body, reader = Body(await asked.mapping()), reader_of(asked)
    entry = entry_to_roll_back_to(app, body.number("id") or 0)
    check_sources(reader, app, entry)
    check_window(reader, app)
    try:
        after = await roll_back(
            desk_of(asked), app, entry, prune=body.flag("prune"), dry_run=body.flag("dryRun"), hold_reason=None
        )
    except PolicyError as error:
        return declined(error)
    await until_seen(asked, after.wire)
    return Json(dict(after.wire))


async def terminated(asked: Asked) -> Json:
    after = await terminate(desk_of(asked), asked.subject)
    await until_seen(asked, after.wire)
    return Json({})


ROUTES = (
    Route(
        "POST", "/api/v1/applications/{name}/sync", May("applications", "sync", of_body), synced, "Start a sync.",
        query=PLACE, takes=schema.SYNC, gives=schema.APPLICATION, tag="applications",
        operation="ApplicationService_Sync",
    ),
    Route(
        # argo: a rollback is a sync and needs the permission to sync
        "POST", "/api/v1/applications/{name}/rollback", May("applications", "sync", of_body), rolled_back,
        "Start a rollback to an entry of the history.", query=PLACE, takes=schema.ROLLBACK, gives=schema.APPLICATION,
        tag="applications", operation="ApplicationService_Rollback",
    ),
    Route(
        "DELETE", "/api/v1/applications/{name}/operation", May("applications", "sync", application), terminated,
        "Terminate the running operation.", query=PLACE, gives=schema.NOTHING, tag="applications",
        operation="ApplicationService_TerminateOperation",
    ),
)  # fmt: skip
