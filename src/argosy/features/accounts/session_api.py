"""Argo CD API routes for sessions: log in with a password, log out, user info.

In: a name and a password. Out: a token, or the same error for every failed login. Never: reveals why a login failed.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.web.auth import cookies
from argosy.web.auth.caller import BadLogin
from argosy.web.caller_clients import account_called
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Public, Route, SignedIn

TAG = "SessionService"
REFUSED = {"error": "Invalid username or password", "code": 16, "message": "Invalid username or password"}  # argo
MOST = 16 << 10  # bytes
NAMED = "login happens before a session exists"


async def create(asked: Asked) -> Json:
    given = await asked.mapping()
    name, password = given.get("username", ""), given.get("password", "")
    if not isinstance(name, str) or not isinstance(password, str):
        raise UserError("username and password must be JSON strings", where="body")
    if not name or not password:
        raise UserError("no credentials supplied; send username and password", where="body")
    asked.noted(account_called(asked, name))
    try:
        token = await asked.site.identities.login(name, password, peer=asked.peer)
    except BadLogin:
        return Json(REFUSED, code=401)
    return Json({"token": token})


async def delete(asked: Asked) -> Json:
    identities = asked.site.identities
    await identities.logout(asked.caller)
    return Json({}, headers=(cookies.dropped(identities.cookie, is_tls=asked.site.options.is_tls),))


async def user_info(asked: Asked) -> Json:
    caller = asked.caller
    told = {"loggedIn": bool(caller.id), "username": caller.shown_name, "iss": caller.issuer}
    return Json({**told, "groups": list(caller.groups)} if caller.groups else told)


ROUTES = (
    Route(
        "POST", "/api/v1/session", Public(NAMED), create, "Log in with a username and password, and get a token.",
        most=MOST, takes="SessionRequest", gives="SessionResponse", tag=TAG, operation="SessionService_Create",
    ),
    Route(
        "DELETE", "/api/v1/session", SignedIn(), delete, "Log out: end this session.",
        gives="Nothing", tag=TAG, operation="SessionService_Delete",
    ),
    Route(
        "GET", "/api/v1/session/userinfo", SignedIn(), user_info, "Get information about the caller.",
        gives="UserInfo", tag=TAG, operation="SessionService_GetUserInfo",
    ),
)  # fmt: skip
