"""API for operations of Applications: sync, rollback, terminate.

In: a request. Out: the Application with the requested operation. Never: waits for its end; starts one that a sync
window, a policy or a running operation forbids.
"""

from __future__ import annotations

from typing import Any

from argosy.errors import PolicyError, UserError
from argosy.features.applications.application_lookup_by_request_body import find_application_in_body
from argosy.features.applications.read.api import APPLICATION_PARAMETERS
from argosy.features.applications.sync.operation_of_sync_request import (
    build_sync_operation,
    has_manifests,
    read_revisions,
)
from argosy.gitops.application import Application
from argosy.gitops.application_client.application_actions import choose_rollback_entry, roll_back, terminate_operation
from argosy.gitops.application_client.rollback_preview import check_entry_sources_permitted
from argosy.gitops.application_client.sync_checks import (
    check_local_manifests,
    check_sync_window,
    needs_override_permission,
    resolve_refs,
)
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader
from argosy.web.caller_application_service import build_reader, build_service, wait_until_visible
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import JsonResponse
from argosy.web.route import RequiresPermission, Route


def build_precondition_error(error: PolicyError) -> JsonResponse:
    """argo: 400 with the gRPC code of a failed precondition."""
    return JsonResponse({"error": f"{error}", "code": 9, "message": f"{error}"}, code=400)


async def start_sync(request: RequestContext) -> JsonResponse:
    app: Application = request.subject
    body, reader, service = BodyReader(await request.read_json_object()), build_reader(request), build_service(request)
    refs = read_revisions(app, body) or ((body.get_text("revision"),) if body.get_text("revision") else ())
    if has_manifests(body) or needs_override_permission(reader, app, refs):
        request.require_permission("applications", "override", request.rbac_object)
    check_sync_window(reader, app)
    user, commits = request.caller.display_name, tuple[str, ...]()

    def build_patch(current: Application) -> dict[str, Any]:
        if current.project != app.project:
            raise UserError("the application was moved to another project; try again", where=app.name)
        return {
            "operation": build_sync_operation(current, body, user, commits if current.sources == app.sources else ())
        }

    try:
        if has_manifests(body):
            check_local_manifests(reader, app, body.get_texts("manifests"))
        else:
            commits = await resolve_refs(reader, app, refs)
        updated = await service.patch_application(app, build_patch)
    except PolicyError as error:
        return build_precondition_error(error)
    await wait_until_visible(request, updated.wire)
    return JsonResponse(dict(updated.wire))


async def start_rollback(request: RequestContext) -> JsonResponse:
    app: Application = request.subject
    body, reader = BodyReader(await request.read_json_object()), build_reader(request)
    entry_id = body.get_int("id")
    if entry_id is None:  # argo: id 0 is the first deployment, so that an absent id must not become 0
        raise UserError("is required; send the id of an entry of the history", where="id")
    entry = choose_rollback_entry(app, entry_id)
    check_entry_sources_permitted(reader, app, entry)
    check_sync_window(reader, app)
    try:
        updated = await roll_back(
            build_service(request),
            app,
            entry,
            prune=body.get_bool("prune"),
            dry_run=body.get_bool("dryRun"),
            hold_reason=None,
        )
    except PolicyError as error:
        return build_precondition_error(error)
    await wait_until_visible(request, updated.wire)
    return JsonResponse(dict(updated.wire))


async def terminate_app_operation(request: RequestContext) -> JsonResponse:
    updated = await terminate_operation(build_service(request), request.subject)
    await wait_until_visible(request, updated.wire)
    return JsonResponse({})


ROUTES = (
    Route(
        "POST",
        "/api/v1/applications/{name}/sync",
        RequiresPermission("applications", "sync", find_application_in_body),
        start_sync,
        "Start a sync.",
        query=APPLICATION_PARAMETERS,
        request_schema=schema.SYNC,
        response_schema=schema.APPLICATION,
        tag="applications",
        operation_id="ApplicationService_Sync",
    ),
    Route(
        # argo: a rollback is a sync and needs the permission to sync
        "POST",
        "/api/v1/applications/{name}/rollback",
        RequiresPermission("applications", "sync", find_application_in_body),
        start_rollback,
        "Start a rollback to an entry of the history.",
        query=APPLICATION_PARAMETERS,
        request_schema={**schema.ROLLBACK, "required": ["id"]},
        response_schema=schema.APPLICATION,
        tag="applications",
        operation_id="ApplicationService_Rollback",
    ),
    Route(
        "DELETE",
        "/api/v1/applications/{name}/operation",
        RequiresPermission("applications", "sync", resolve_application),
        terminate_app_operation,
        "Terminate the running operation.",
        query=APPLICATION_PARAMETERS,
        response_schema=schema.NOTHING,
        tag="applications",
        operation_id="ApplicationService_TerminateOperation",
    ),
)
