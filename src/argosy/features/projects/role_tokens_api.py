"""Argo CD API routes for project role tokens: create and revoke.

In: a request. Out: a token, once. Never: creates a token for a project that the caller may not update.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import UserError
from argosy.features.projects import api
from argosy.gitops.policy.rbac import Subjects
from argosy.gitops.policy.roles import role_subject
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body
from argosy.web.auth.role_tokens import add_role_token, remove_role_token
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import May, Parameter, Route

LONGEST_ID: Final = 100
TO_MAKE: Final = schema.fields(
    id=schema.TEXT, expiresIn={"type": ["integer", "string"]}, project=schema.TEXT, role=schema.TEXT,
    description=schema.TEXT,
)  # fmt: skip


async def made(asked: Asked) -> Json:
    body = Body(await asked.mapping())
    seconds, token_id = body.number("expiresIn") or 0, body.text("id")
    if len(token_id) > LONGEST_ID or any(ord(char) < 33 or ord(char) > 126 for char in token_id):
        raise UserError(f"is not a valid id; use at most {LONGEST_ID} printable ASCII characters", where="id")
    desk, role = api.desk(asked), asked.values["role"]
    subjects = Subjects(role_subject(asked.thing, role), is_project_role=True)
    limits = asked.site.identities.token_limits(asked.caller, subjects)
    token = await add_role_token(desk, asked.thing, role, seconds=seconds, token_id=token_id, limits=limits)
    return Json({"token": token})


async def revoked(asked: Asked) -> Json:
    given, token_id = asked.values["iat"], asked.query.text("id")
    if not (given.isascii() and given.isdecimal() and len(given) < 17):
        raise UserError("is not a timestamp; send the issue time of the token in seconds", where="iat")
    desk, role = api.desk(asked), asked.values["role"]
    await remove_role_token(desk, asked.thing, role, issued=int(given), token_id=token_id)
    return Json({})


_PATH: Final = "/api/v1/projects/{project}/roles/{role}/token"
UPDATE: Final = May("projects", "update", api.project)
ROUTES = (
    Route(
        "POST", _PATH, UPDATE, made, "Create a token for a project role. The token is returned only once.",
        takes=TO_MAKE, gives="TokenResponse", tag="projects",
        operation="ProjectService_CreateToken",
    ),
    Route(
        "DELETE", f"{_PATH}/{{iat}}", UPDATE, revoked, "Revoke a token of a project role.",
        query=(Parameter("id", "Id of the token; without it, the token is found by its issue time."),),
        gives=schema.NOTHING, tag="projects", operation="ProjectService_DeleteToken",
    ),
)  # fmt: skip
