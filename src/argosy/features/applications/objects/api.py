"""API to get, patch and delete single objects of an Application, and to run actions.

In: a request. Out: Argo CD's format. Never: an object outside the Application's tree, or one that its project does
not permit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from argosy.errors import UserError
from argosy.features.applications.application_lookup_by_request_body import (
    build_object_action_resolver,
    find_application_in_body,
)
from argosy.features.applications.read.api import APPLICATION_PARAMETERS
from argosy.features.applications.read.manifests_tree_api import read_object_selector
from argosy.features.applications.read.tree_and_diff_response import manifest_to_json
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.object_operations import delete_object, patch_object
from argosy.gitops.application_client.owned_objects import load_owned_object
from argosy.gitops.application_client.resource_actions_and_logs import (
    ObjectSelector,
    load_actions,
    run_action,
    run_action_on_application,
)
from argosy.gitops.diff import mask_secrets
from argosy.gitops.health.actions import ResourceAction
from argosy.gitops.status.status_json_conversions import omit_empty
from argosy.kube.client import PatchKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader, rename_flags_to_body_fields
from argosy.web.caller_application_service import build_impersonating_reader, build_reader
from argosy.web.error_details import report_without_code
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, ResolvedObject, Route

MERGE_PATCH: Final = PatchKind.MERGE
PATCH_KINDS_BY_NAME: Final = {
    "": MERGE_PATCH,
    "merge": MERGE_PATCH,
    "json": PatchKind.JSON,
    "strategic": PatchKind.STRATEGIC,
}


async def _get_object(request: RequestContext, reader: ApplicationReader) -> Manifest:
    return await load_owned_object(reader, request.subject, read_object_selector(request.query, "resourceName"))


def _manifest_response(reader: ApplicationReader, manifest: Manifest) -> JsonResponse:
    (masked_manifest,) = mask_secrets([manifest], reader.reconciler_settings.diff.masked_annotations)
    return JsonResponse({"manifest": manifest_to_json(masked_manifest)})


async def get_resource(request: RequestContext) -> JsonResponse:
    reader = build_reader(request)
    return _manifest_response(reader, await _get_object(request, reader))


async def patch_resource(request: RequestContext) -> JsonResponse:
    """argo: The body is the patch as a string; a JSON object is accepted, too."""
    reader, document = build_reader(request), await request.read_json()
    patch_type = request.query.get_text("patchType")
    kind = PATCH_KINDS_BY_NAME.get(patch_type, patch_type)
    if kind not in tuple(PatchKind):
        raise UserError(f"unknown patch type; send one of {', '.join(PatchKind)}", where="patchType")
    if not document:
        raise UserError("missing patch; send it as the body", where="body")
    manifest, patch = await _get_object(request, reader), document if isinstance(document, str) else _to_json(document)
    with rename_flags_to_body_fields():
        await patch_object(build_impersonating_reader(request, request.subject), request.subject, manifest, patch, kind)
    updated = await (request.service if reader.is_here else reader).cluster.get(key_of(manifest))
    return _manifest_response(reader, updated or manifest)


def _to_json(document: Any) -> str:
    return orjson.dumps(document).decode()


async def delete_resource(request: RequestContext) -> JsonResponse:
    reader = build_reader(request)
    manifest = await _get_object(request, reader)
    orphan, force = request.query.get_bool("orphan"), request.query.get_bool("force")
    await delete_object(
        build_impersonating_reader(request, request.subject), request.subject, manifest, orphan=orphan, force=force
    )
    return JsonResponse({})


# -- actions -------------------------------------------------------------------------------------------------------


async def list_resource_actions(request: RequestContext) -> JsonResponse:
    """argo: Clients list the actions of the Application itself, too."""
    reader, app = build_reader(request), request.subject
    choice = read_object_selector(request.query, "resourceName")
    manifest = dict(app.wire) if _is_itself(app, choice) else await load_owned_object(reader, app, choice)
    discovered = await load_actions(reader).discover(manifest)
    return JsonResponse({"actions": [_action_to_wire(action) for action in discovered]})


def _is_itself(app: Application, choice: ObjectSelector) -> bool:
    """argo: any namespace is accepted."""
    return (choice.group, choice.kind, choice.name) == (*APPLICATION, app.name)


def _action_to_wire(action: ResourceAction) -> dict[str, Any]:
    optional_fields = omit_empty(disabled=action.disabled, iconClass=action.icon, displayName=action.display_name)
    params = [{"name": parameter} for parameter in action.parameters]
    return {"name": action.name, **optional_fields, **omit_empty(params=params)}


async def resolve_app_for_action(request: RequestContext) -> ResolvedObject | None:
    """argo: RBAC action `action/<group>/<kind>/<action>`. The body is the name of the action, as a string."""
    name = await request.read_json()
    if not isinstance(name, str) or not name:
        raise UserError("missing action; send its name as a JSON string", where="body")
    lookup = await resolve_application(request)
    query = request.query
    return _with_action(lookup, ObjectSelector(query.get_text("group"), query.get_text("kind")), name)


async def resolve_app_for_action_v2(request: RequestContext) -> ResolvedObject | None:
    body = BodyReader(await request.read_json_object())
    lookup = await find_application_in_body(request)
    return _with_action(lookup, ObjectSelector(body.get_text("group"), body.get_text("kind")), body.get_text("action"))


def _with_action(lookup: ResolvedObject | None, choice: ObjectSelector, name: str) -> ResolvedObject | None:
    return None if lookup is None else replace(lookup, action=f"action/{choice.group}/{choice.kind}/{name}")


async def run_resource_action(request: RequestContext) -> JsonResponse:
    choice = read_object_selector(request.query, "resourceName")
    return await _run_action(request, choice, await request.read_json(), {})


async def run_resource_action_v2(request: RequestContext) -> JsonResponse:
    body = BodyReader(await request.read_json_object())
    choice = ObjectSelector(*(body.get_text(part) for part in ("group", "kind", "namespace", "resourceName")))
    parameters = {
        parameter.get_text("name"): parameter.get_text("value")
        for parameter in body.get_bodies("resourceActionParameters")
    }
    return await _run_action(request, choice, body.get_text("action"), parameters)


async def _run_action(
    request: RequestContext, choice: ObjectSelector, name: str, parameters: Mapping[str, str]
) -> JsonResponse:
    reader, app = build_reader(request), request.subject
    if _is_itself(app, choice):
        with report_without_code():
            await run_action_on_application(reader, app, load_actions(reader), name, parameters)
        return JsonResponse({})
    manifest = await load_owned_object(reader, app, choice)
    writer = build_impersonating_reader(request, app)
    with report_without_code():
        await run_action(writer, app, load_actions(reader), manifest, name, parameters)
    return JsonResponse({})


OBJECT_PARAMETERS: Final = (
    QueryParameter("resourceName", "The name of the object.", is_required=True),
    QueryParameter("kind", "Its kind.", is_required=True),
    QueryParameter("group", "Its API group; empty for the core group."),
    QueryParameter("namespace", "Its namespace."),
    QueryParameter("version", "Its version; ignored."),
    *APPLICATION_PARAMETERS,
)
RESOURCE_PATH: Final = "/api/v1/applications/{name}/resource"
ROUTES = (
    Route(
        "GET",
        RESOURCE_PATH,
        RequiresPermission("applications", "get", resolve_application),
        get_resource,
        "Get an object of an Application.",
        query=OBJECT_PARAMETERS,
        response_schema=schema.RESOURCE,
        tag="applications",
        operation_id="ApplicationService_GetResource",
    ),
    Route(
        "POST",
        RESOURCE_PATH,
        RequiresPermission("applications", "update", build_object_action_resolver("update")),
        patch_resource,
        "Patch an object. Its action is `update/GROUP/KIND/NAMESPACE/NAME`.",
        query=(*OBJECT_PARAMETERS, QueryParameter("patchType", f"Such as {MERGE_PATCH} (default).")),
        request_schema=schema.STRING_SCHEMA,
        response_schema=schema.RESOURCE,
        tag="applications",
        operation_id="ApplicationService_PatchResource",
    ),
    Route(
        "DELETE",
        RESOURCE_PATH,
        RequiresPermission("applications", "delete", build_object_action_resolver("delete")),
        delete_resource,
        "Delete an object. Its action is `delete/GROUP/KIND/NAMESPACE/NAME`.",
        query=(
            *OBJECT_PARAMETERS,
            QueryParameter("force", "Without grace period.", "boolean"),
            QueryParameter("orphan", "Keep its children.", "boolean"),
        ),
        response_schema=schema.NOTHING,
        tag="applications",
        operation_id="ApplicationService_DeleteResource",
    ),
    Route(
        "GET",
        f"{RESOURCE_PATH}/actions",
        RequiresPermission("applications", "get", resolve_application),
        list_resource_actions,
        "List the actions of an object.",
        query=OBJECT_PARAMETERS,
        response_schema=schema.ACTIONS,
        tag="applications",
        operation_id="ApplicationService_ListResourceActions",
    ),
    Route(
        "POST",
        f"{RESOURCE_PATH}/actions",
        RequiresPermission("applications", "action", resolve_app_for_action),
        run_resource_action,
        "Run an action on an object. Its action is `action/GROUP/KIND/NAME`.",
        query=OBJECT_PARAMETERS,
        request_schema=schema.STRING_SCHEMA,
        response_schema=schema.NOTHING,
        tag="applications",
        operation_id="ApplicationService_RunResourceAction",
    ),
    Route(
        "POST",
        f"{RESOURCE_PATH}/actions/v2",
        RequiresPermission("applications", "action", resolve_app_for_action_v2),
        run_resource_action_v2,
        "Run an action on an object, with parameters.",
        query=APPLICATION_PARAMETERS,
        request_schema=schema.ACTION,
        response_schema=schema.NOTHING,
        tag="applications",
        operation_id="ApplicationService_RunResourceActionV2",
    ),
)
