"""Sessions of programs, as Argo CD has them: a password becomes a token.

In: a name and a password. Out: a token, or one answer for everything that is wrong. Never: says what is wrong.
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
NAMED = "without one, nobody could sign in"


async def create(asked: Asked) -> Json:
    given = await asked.mapping()
    name, password = given.get("username", ""), given.get("password", "")
    if not isinstance(name, str) or not isinstance(password, str):
        raise UserError("username and password must be texts; send both as JSON strings", where="body")
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
        "POST", "/api/v1/session", Public(NAMED), create, "Get a token for a name and a password.",
        most=MOST, takes="SessionRequest", gives="SessionResponse", tag=TAG, operation="SessionService_Create",
    ),
    Route(
        "DELETE", "/api/v1/session", SignedIn(), delete, "End this session everywhere.",
        gives="Nothing", tag=TAG, operation="SessionService_Delete",
    ),
    Route(
        "GET", "/api/v1/session/userinfo", SignedIn(), user_info, "Who asks.",
        gives="UserInfo", tag=TAG, operation="SessionService_GetUserInfo",
    ),
)  # fmt: skip
