"""Argo CD API routes for sessions: log in with a password, log out, user info.

In: a name and a password. Out: a token, or the same error for every failed login. Never: reveals why a login failed.
"""

from __future__ import annotations

from contextlib import suppress
from http.cookies import CookieError, SimpleCookie

from argosy.errors import UserError
from argosy.web.auth import login_set_cookie_headers
from argosy.web.auth.authenticator import ARGOCD_COOKIE
from argosy.web.auth.caller import BadCredential, BadLogin, RequestCredentials
from argosy.web.caller_application_service import get_audit_account_name
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse, RedirectResponse
from argosy.web.route import Public, Route, SignedIn

OPENAPI_TAG = "SessionService"
LOGIN_FAILED = "Invalid username or password"
LOGIN_FAILED_BODY = {"error": LOGIN_FAILED, "code": 16, "message": LOGIN_FAILED}  # argo
MAX_BODY_BYTES = 16 << 10  # bytes
PUBLIC_REASON = "login happens before a session exists"


async def create_session(request: RequestContext) -> JsonResponse:
    body = await request.read_json_object()
    name, password = body.get("username", ""), body.get("password", "")
    if not isinstance(name, str) or not isinstance(password, str):
        raise UserError("username and password must be JSON strings", where="body")
    if not name or not password:
        raise UserError("no credentials supplied; send username and password", where="body")
    request.add_audit_entry(get_audit_account_name(request, name))
    try:
        token = await request.authenticator.login(name, password, peer=request.peer)
    except BadLogin:
        return JsonResponse(LOGIN_FAILED_BODY, code=401)
    return JsonResponse({"token": token})


async def delete_session(request: RequestContext) -> JsonResponse:
    identities = request.authenticator
    await identities.logout(request.caller)
    return JsonResponse(
        {}, headers=(login_set_cookie_headers.build_deleted_cookie(identities.cookie, is_tls=request.options.is_tls),)
    )


async def log_out_argocd_cli(request: RequestContext) -> RedirectResponse:
    """argo: `argocd logout` sends its token in a cookie, and not to the API."""
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(ARGOCD_COOKIE)
    except CookieError:
        morsel = None
    if morsel is None or not morsel.value:
        raise UserError(f"no session to log out of; send the token in the cookie {ARGOCD_COOKIE}")
    with suppress(BadCredential):
        caller = await request.authenticator.identify(RequestCredentials(bearer=morsel.value, peer=request.peer))
        if caller is not None:
            request.add_audit_entry(caller.name)
            await request.authenticator.logout(caller)
    return RedirectResponse("/login")


async def get_user_info(request: RequestContext) -> JsonResponse:
    """argo: also without a session, so that a client finds out whether its token is still valid."""
    caller = request.caller
    if caller.is_nobody:
        return JsonResponse({})
    info = {"loggedIn": bool(caller.id), "username": caller.display_name, "iss": caller.issuer}
    return JsonResponse({**info, "groups": list(caller.groups)} if caller.groups else info)


ROUTES = (
    Route(
        "POST",
        "/api/v1/session",
        Public(PUBLIC_REASON),
        create_session,
        "Log in with a username and password, and get a token.",
        max_body_bytes=MAX_BODY_BYTES,
        request_schema="SessionRequest",
        response_schema="SessionResponse",
        tag=OPENAPI_TAG,
        operation_id="SessionService_Create",
    ),
    Route(
        "DELETE",
        "/api/v1/session",
        SignedIn(),
        delete_session,
        "Log out: end this session.",
        response_schema="Nothing",
        tag=OPENAPI_TAG,
        operation_id="SessionService_Delete",
    ),
    Route(
        "POST",
        "/auth/logout",
        Public("the token is in a cookie of Argo CD's name, which this server does not set"),
        log_out_argocd_cli,
        "Log out the argocd CLI.",
        accepted_media_types=("*",),
        max_body_bytes=MAX_BODY_BYTES,
    ),
    Route(
        "GET",
        "/api/v1/session/userinfo",
        Public("clients ask it whether they are logged in"),
        get_user_info,
        "Get information about the caller.",
        response_schema="UserInfo",
        tag=OPENAPI_TAG,
        operation_id="SessionService_GetUserInfo",
    ),
)
