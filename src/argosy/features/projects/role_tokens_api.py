"""Argo CD API routes for project role tokens: create and revoke.

In: a request. Out: a token, once. Never: creates a token for a project that the caller may not update.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.features.projects import api
from argosy.gitops.application_client.project_event_recorder import record_project_event
from argosy.gitops.policy.builtin_and_project_roles import format_role_subject
from argosy.gitops.policy.rbac import RbacRequester
from argosy.gitops.status.application_event_manifests import EventReason
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader
from argosy.web.auth.role_token_creation_and_deletion import add_role_token, remove_role_token
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, Route

MAX_ID_CHARACTERS: Final = 100
CREATE_SCHEMA: Final = schema.build_object_schema(
    id=schema.STRING_SCHEMA,
    expiresIn={"type": ["integer", "string"]},
    project=schema.STRING_SCHEMA,
    role=schema.STRING_SCHEMA,
    description=schema.STRING_SCHEMA,
)


async def create_token(request: RequestContext) -> JsonResponse:
    body = BodyReader(await request.read_json_object())
    seconds, token_id = body.get_int("expiresIn") or 0, body.get_text("id")
    if len(token_id) > MAX_ID_CHARACTERS or any(ord(char) < 33 or ord(char) > 126 for char in token_id):
        raise UserError(f"is not a valid id; use at most {MAX_ID_CHARACTERS} printable ASCII characters", where="id")
    app_service, role = api.project_service(request), request.path_parameters["role"]
    subjects = RbacRequester(format_role_subject(request.rbac_object, role), is_project_role=True)
    limits = request.authenticator.get_token_limits(request.caller, subjects)
    token = await add_role_token(
        app_service, request.rbac_object, role, lifetime_seconds=seconds, token_id=token_id, limits=limits
    )
    await record_project_event(app_service, request.rbac_object, EventReason.RESOURCE_CREATED, "created token")
    return JsonResponse({"token": token})


async def revoke_token(request: RequestContext) -> JsonResponse:
    issued_at_text, token_id = request.path_parameters["iat"], request.query.get_text("id")
    if not (issued_at_text.isascii() and issued_at_text.isdecimal() and len(issued_at_text) < 17):
        raise UserError("is not a timestamp; send the issue time of the token in seconds", where="iat")
    app_service, role = api.project_service(request), request.path_parameters["role"]
    await remove_role_token(app_service, request.rbac_object, role, issued=int(issued_at_text), token_id=token_id)
    await record_project_event(app_service, request.rbac_object, EventReason.RESOURCE_DELETED, "deleted token")
    return JsonResponse({})


_PATH: Final = "/api/v1/projects/{project}/roles/{role}/token"
UPDATE_PERMISSION: Final = RequiresPermission("projects", "update", api.find_project)
ROUTES = (
    Route(
        "POST",
        _PATH,
        UPDATE_PERMISSION,
        create_token,
        "Create a token for a project role. The token is returned only once.",
        request_schema=CREATE_SCHEMA,
        response_schema="TokenResponse",
        tag="projects",
        operation_id="ProjectService_CreateToken",
    ),
    Route(
        "DELETE",
        f"{_PATH}/{{iat}}",
        UPDATE_PERMISSION,
        revoke_token,
        "Revoke a token of a project role.",
        query=(QueryParameter("id", "Id of the token; without it, the token is found by its issue time."),),
        response_schema=schema.NOTHING,
        tag="projects",
        operation_id="ProjectService_DeleteToken",
    ),
)
