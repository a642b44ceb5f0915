"""Accounts: who there is, what oneself may, passwords and tokens; tokens of roles of projects.

In: a request. Out: Accounts in Argo CD's shape; a token, once. Never: a hash; another's account without a right to it.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.desk.accounts.reading import Account
from argosy.desk.accounts.role_tokens import add_role_token, remove_role_token
from argosy.model.errors import UserError
from argosy.server.answers import Json
from argosy.server.api import projects
from argosy.server.api import shapes_schema as schema
from argosy.server.api.shapes_bodies import Body
from argosy.server.asked import Asked, Refused
from argosy.server.routes import Filtered, May, Parameter, Route, SignedIn

TAG: Final = "accounts"
MARK: Final = schema.fields(id=schema.TEXT, issuedAt=schema.TEXT, expiresAt=schema.TEXT)
ACCOUNT: Final = schema.fields(
    name=schema.TEXT, enabled=schema.FLAG, capabilities=schema.many(schema.TEXT), tokens=schema.many(MARK)
)
MADE: Final = schema.fields("token", token=schema.TEXT)
TO_MAKE: Final = schema.fields(
    name=schema.TEXT, id=schema.TEXT, expiresIn={"type": ["integer", "string"]}, project=schema.TEXT, role=schema.TEXT,
    description=schema.TEXT,
)  # fmt: skip
LONGEST_ID: Final = 100


def document(account: Account) -> dict[str, Any]:
    """argo: times are texts of seconds; 0 is none."""
    marks = [{"id": each.id, "issuedAt": str(each.issued), "expiresAt": str(each.expires)} for each in account.tokens]
    return {
        "name": account.name,
        "enabled": account.is_enabled,
        "capabilities": list(account.capabilities),
        "tokens": marks,
    }


def _is_self(asked: Asked, name: str) -> bool:
    """argo: an account may always see and change itself; a role or a person from elsewhere is none."""
    return asked.caller.name == name and asked.caller.kind == "account"


async def _one(asked: Asked, action: str) -> Account:
    name = asked.values["name"]
    if not _is_self(asked, name):
        asked.require("accounts", action, name)
    found: Account | None = (await asked.site.identities.book.all()).get(name)
    if found is None:
        raise Refused
    return found


async def listed(asked: Asked) -> Json:
    found = await asked.site.identities.book.all()
    seen = [each for each in found.values() if _is_self(asked, each.name) or asked.may("accounts", "get", each.name)]
    return Json({"items": [document(each) for each in seen]})


async def got(asked: Asked) -> Json:
    return Json(document(await _one(asked, "get")))


async def can_i(asked: Asked) -> Json:
    values = asked.values
    may = asked.may(values["resource"], values["action"], values["subresource"])
    return Json({"value": "yes" if may else "no"})


async def changed(asked: Asked) -> Json:
    """argo: whoever changes one shows their own password."""
    body = Body(await asked.mapping())
    name = body.text("name") or asked.caller.name
    if not _is_self(asked, name):
        asked.require("accounts", "update", name)
    if not body.text("newPassword"):
        raise UserError("is missing; send the new one", where="newPassword")
    if not await asked.site.identities.verify(asked.caller, body.text("currentPassword")):
        raise UserError("current password does not match; send your own", where="currentPassword")
    await asked.site.identities.book.set_password(name, body.text("newPassword"))
    return Json({})


def _wanted(body: Body) -> tuple[int, str]:
    seconds, token_id = body.number("expiresIn") or 0, body.text("id")
    if len(token_id) > LONGEST_ID or any(ord(char) < 33 or ord(char) > 126 for char in token_id):
        raise UserError(f"is no id; write at most {LONGEST_ID} plain characters", where="id")
    return seconds, token_id


async def made(asked: Asked) -> Json:
    account = await _one(asked, "update")
    seconds, token_id = _wanted(Body(await asked.mapping()))
    token = await asked.site.identities.book.add_token(account.name, seconds=seconds, token_id=token_id)
    return Json({"token": token})


async def revoked(asked: Asked) -> Json:
    account = await _one(asked, "update")
    await asked.site.identities.book.remove_token(account.name, asked.values["id"])
    return Json({})


# -- roles of projects -------------------------------------------------------------------------------------------


async def made_for_role(asked: Asked) -> Json:
    seconds, token_id = _wanted(Body(await asked.mapping()))
    desk, values = projects.desk(asked), asked.values
    token = await add_role_token(desk, asked.thing, values["role"], seconds=seconds, token_id=token_id)
    return Json({"token": token})


async def revoked_of_role(asked: Asked) -> Json:
    given, token_id = asked.values["iat"], asked.query.text("id")
    if not (given.isascii() and given.isdecimal() and len(given) < 17):
        raise UserError("is no time; write the seconds at which the token was issued", where="iat")
    issued = int(given)
    await remove_role_token(projects.desk(asked), asked.thing, asked.values["role"], issued=issued, token_id=token_id)
    return Json({})


_PATH, _ROLE = "/api/v1/account", "/api/v1/projects/{project}/roles/{role}/token"
UPDATE: Final = May("projects", "update", projects.project)
ROUTES = (
    Route(
        "GET", _PATH, Filtered("accounts", "get"), listed, "List accounts: oneself, and those that one may see.",
        gives=schema.fields(items=schema.many(ACCOUNT)), tag=TAG, operation="AccountService_ListAccounts",
    ),
    Route(
        "GET", f"{_PATH}/can-i/{{resource}}/{{action}}/{{subresource*}}", SignedIn(), can_i,
        "Whether one may: yes or no.",
        gives=schema.fields("value", value=schema.TEXT), tag=TAG, operation="AccountService_CanI",
    ),
    Route(
        "PUT", f"{_PATH}/password", SignedIn(), changed,
        "Change a password: one's own, or with the right to update that account another's. One's own is to be shown.",
        takes=schema.fields(
            "newPassword", "currentPassword", name=schema.TEXT, newPassword=schema.TEXT, currentPassword=schema.TEXT
        ),
        gives=schema.NOTHING, tag=TAG, operation="AccountService_UpdatePassword",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}", Filtered("accounts", "get"), got,
        "Read an account: oneself, or one that one may see.",
        gives=ACCOUNT, tag=TAG, operation="AccountService_GetAccount",
    ),
    Route(
        "POST", f"{_PATH}/{{name}}/token", Filtered("accounts", "update"), made,
        "Make a token of an account: oneself, or one that one may update. It is told once.",
        takes=TO_MAKE, gives=MADE, tag=TAG, operation="AccountService_CreateToken",
    ),
    Route(
        "DELETE", f"{_PATH}/{{name}}/token/{{id}}", Filtered("accounts", "update"), revoked,
        "Take a token back: of oneself, or of one that one may update.",
        gives=schema.NOTHING, tag=TAG, operation="AccountService_DeleteToken",
    ),
    Route(
        "POST", _ROLE, UPDATE, made_for_role, "Make a token of a project's role. It is told once.",
        takes=TO_MAKE, gives=MADE, tag="projects", operation="ProjectService_CreateToken",
    ),
    Route(
        "DELETE", f"{_ROLE}/{{iat}}", UPDATE, revoked_of_role, "Take a token of a project's role back.",
        query=(Parameter("id", "Its id, where it is known; else it is found by when it was issued."),),
        gives=schema.NOTHING, tag="projects", operation="ProjectService_DeleteToken",
    ),
)  # fmt: skip
