"""Argo CD API routes for accounts: list, tokens, passwords, can-i.

In: a request. Out: accounts; a new token, once. Never: returns a password hash or an existing token.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.policy.rbac import Subjects
from argosy.web.api.paging import ARGO_PAGING, part
from argosy.web.auth.accounts import Account
from argosy.web.request import Asked, Refused
from argosy.web.responses import Json
from argosy.web.route import Filtered, Route, SignedIn

TAG: Final = "AccountService"
RECENTLY: Final = 300  # argo: maximum age in seconds of an SSO login that may change a password


def may(asked: Asked, action: str, name: str) -> bool:
    """argo: True if the caller has the permission, or is this account itself."""
    is_self = asked.caller.kind == "account" and asked.caller.name == name
    return is_self or asked.may("accounts", action, name)


async def all_accounts(asked: Asked) -> Json:
    known = await asked.site.identities.book.all()
    return part(asked, [_told(each) for each in known.values() if may(asked, "get", each.name)])


async def one(asked: Asked) -> Json:
    return Json(_told(await _account(asked, "get")))


async def can(asked: Asked) -> Json:
    resource, action, thing = (asked.values[name] for name in ("resource", "action", "subresource"))
    return Json({"value": "yes" if asked.may(resource, action, thing) else "no"})


async def change_password(asked: Asked) -> Json:
    """argo: the caller sends their own current password, whichever account is changed."""
    given = await asked.mapping()
    name = text_of(given, "name") or asked.caller.name
    if not may(asked, "update", name):
        raise Refused
    asked.noted(name)
    identities, caller = asked.site.identities, asked.caller
    if caller.kind == "account":
        if not await identities.verify(caller, text_of(given, "currentPassword"), asked.peer):
            raise UserError("current password does not match; send the password of the calling account", where="body")
    elif caller.kind != "person" or abs(identities.book.now() - caller.claims.began) > RECENTLY:
        raise UserError("changing a password needs a recent login; log in again", where="body")
    await identities.book.set_password(name, text_of(given, "newPassword"))
    return Json({})


async def add_token(asked: Asked) -> Json:
    account = await _account(asked, "update")
    given = await asked.mapping()
    book, token_id = asked.site.identities.book, text_of(given, "id")
    limits = asked.site.identities.token_limits(asked.caller, Subjects(account.name))
    token = await book.add_token(account.name, seconds=seconds_of(given), token_id=token_id, limits=limits)
    return Json({"token": token})


async def remove_token(asked: Asked) -> Json:
    account = await _account(asked, "update")
    await asked.site.identities.book.remove_token(account.name, asked.values["id"])
    return Json({})


async def _account(asked: Asked, action: str) -> Account:
    """The account in the path. A missing and a forbidden account get the same response."""
    name = asked.values["name"]
    found: Account | None = (await asked.site.identities.book.all()).get(name)
    if found is None or not may(asked, action, name):
        raise Refused
    return found


def seconds_of(given: dict[str, Any]) -> int:
    found = given.get("expiresIn") or 0
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) < 12:
        found = int(found)  # argo: 64-bit numbers may be strings
    if type(found) is not int or not 0 <= found < 1 << 36:
        raise UserError("invalid expiresIn; send a number of seconds, or 0 for no expiry", where="body")
    return found


def text_of(given: dict[str, Any], name: str) -> str:
    value = given.get(name) or ""
    if not isinstance(value, str):
        raise UserError(f"{name} must be a JSON string", where="body")
    return value


def _told(account: Account) -> dict[str, Any]:
    marks = [
        {"id": each.id, "issuedAt": each.issued, **({"expiresAt": each.expires} if each.expires else {})}
        for each in account.tokens
    ]
    return {
        "name": account.name,
        "enabled": account.is_enabled,
        "capabilities": list(account.capabilities),
        **({"tokens": marks} if marks else {}),
    }


ROUTES = (
    Route(
        "GET", "/api/v1/account", Filtered("accounts", "get"), all_accounts, "List accounts.",
        query=ARGO_PAGING, gives="AccountList", tag=TAG, operation="AccountService_ListAccounts",
    ),
    Route(
        "GET", "/api/v1/account/can-i/{resource}/{action}/{subresource*}", SignedIn(), can,
        "Check whether the caller has a permission.", gives="CanI", tag=TAG, operation="AccountService_CanI",
    ),
    Route(
        "PUT", "/api/v1/account/password", SignedIn(), change_password,
        "Change a password; all sessions of the account end.",
        takes="PasswordRequest", gives="Nothing", tag=TAG, operation="AccountService_UpdatePassword",
    ),
    Route(
        "GET", "/api/v1/account/{name}", SignedIn(), one, "Get an account.",
        gives="Account", tag=TAG, operation="AccountService_GetAccount",
    ),
    Route(
        "POST", "/api/v1/account/{name}/token", SignedIn(), add_token,
        "Create a token. The token is returned only once.",
        takes="TokenRequest", gives="TokenResponse", tag=TAG, operation="AccountService_CreateToken",
    ),
    Route(
        "DELETE", "/api/v1/account/{name}/token/{id}", SignedIn(), remove_token, "Revoke a token.",
        gives="Nothing", tag=TAG, operation="AccountService_DeleteToken",
    ),
)  # fmt: skip
