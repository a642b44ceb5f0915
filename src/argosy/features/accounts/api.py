"""Argo CD API routes for accounts: list, tokens, passwords, can-i.

In: a request. Out: accounts; a new token, once. Never: returns a password hash or an existing token.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.gitops.policy.rbac import RbacRequester
from argosy.web.api.paging import ARGO_PAGING, build_argo_page
from argosy.web.auth.accounts import Account
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, Route, SignedIn

OPENAPI_TAG: Final = "AccountService"
MAX_LOGIN_AGE_SECONDS: Final = 300  # argo: maximum age in seconds of an SSO login that may change a password


def can_access_account(request: RequestContext, action: str, name: str) -> bool:
    """argo: True if the caller has the permission, or is this account itself."""
    is_self = request.caller.kind == "account" and request.caller.name == name
    return is_self or request.is_allowed("accounts", action, name)


async def list_accounts(request: RequestContext) -> JsonResponse:
    accounts = await request.authenticator.account_store.list_accounts()
    return build_argo_page(
        request,
        [
            _account_to_wire(account)
            for account in accounts.values()
            if can_access_account(request, "get", account.name)
        ],
    )


async def get_account(request: RequestContext) -> JsonResponse:
    return JsonResponse(_account_to_wire(await _find_account(request, "get")))


async def check_permission(request: RequestContext) -> JsonResponse:
    resource, action, thing = (request.path_parameters[name] for name in ("resource", "action", "subresource"))
    return JsonResponse({"value": "yes" if request.is_allowed(resource, action, thing) else "no"})


async def update_password(request: RequestContext) -> JsonResponse:
    """argo: the caller sends their own current password, whichever account is changed."""
    body = await request.read_json_object()
    name = read_text(body, "name") or request.caller.name
    if not can_access_account(request, "update", name):
        raise NotFoundOrForbidden
    request.add_audit_entry(name)
    identities, caller = request.authenticator, request.caller
    if caller.kind == "account":
        if not await identities.verify_password(caller, read_text(body, "currentPassword"), request.peer):
            raise UserError("current password does not match; send the password of the calling account", where="body")
    elif caller.kind != "person" or not _is_recent(caller.claims.session_started_at, identities.account_store.now()):
        raise UserError("changing a password needs a recent login; log in again", where="body")
    await identities.account_store.set_password(name, read_text(body, "newPassword"))
    return JsonResponse({})


def _is_recent(login_time: float, now: float) -> bool:
    return abs(now - login_time) <= MAX_LOGIN_AGE_SECONDS


async def create_token(request: RequestContext) -> JsonResponse:
    account = await _find_account(request, "update")
    body = await request.read_json_object()
    book, token_id = request.authenticator.account_store, read_text(body, "id")
    limits = request.authenticator.get_token_limits(request.caller, RbacRequester(account.name))
    token = await book.add_token(
        account.name, lifetime_seconds=read_expiry_seconds(body), token_id=token_id, limits=limits
    )
    return JsonResponse({"token": token})


async def delete_token(request: RequestContext) -> JsonResponse:
    account = await _find_account(request, "update")
    await request.authenticator.account_store.remove_token(account.name, request.path_parameters["id"])
    return JsonResponse({})


async def _find_account(request: RequestContext, action: str) -> Account:
    """The account in the path. A missing and a forbidden account get the same response."""
    name = request.path_parameters["name"]
    account: Account | None = (await request.authenticator.account_store.list_accounts()).get(name)
    if account is None or not can_access_account(request, action, name):
        raise NotFoundOrForbidden
    return account


def read_expiry_seconds(body: dict[str, Any]) -> int:
    seconds = body.get("expiresIn") or 0
    if isinstance(seconds, str) and seconds.isascii() and seconds.isdecimal() and len(seconds) < 12:
        seconds = int(seconds)  # argo: 64-bit numbers may be strings
    if type(seconds) is not int or not 0 <= seconds < 1 << 36:
        raise UserError("invalid expiresIn; send a number of seconds, or 0 for no expiry", where="body")
    return seconds


def read_text(body: dict[str, Any], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise UserError(f"{name} must be a JSON string", where="body")
    return value


def _account_to_wire(account: Account) -> dict[str, Any]:
    tokens = [
        {"id": token.id, "issuedAt": token.issued_at, **({"expiresAt": token.expires_at} if token.expires_at else {})}
        for token in account.tokens
    ]
    return {
        "name": account.name,
        "enabled": account.is_enabled,
        "capabilities": list(account.capabilities),
        **({"tokens": tokens} if tokens else {}),
    }


ROUTES = (
    Route(
        "GET",
        "/api/v1/account",
        FilteredList("accounts", "get"),
        list_accounts,
        "List accounts.",
        query=ARGO_PAGING,
        response_schema="AccountList",
        tag=OPENAPI_TAG,
        operation_id="AccountService_ListAccounts",
    ),
    Route(
        "GET",
        "/api/v1/account/can-i/{resource}/{action}/{subresource*}",
        SignedIn(),
        check_permission,
        "Check whether the caller has a permission.",
        response_schema="CanI",
        tag=OPENAPI_TAG,
        operation_id="AccountService_CanI",
    ),
    Route(
        "PUT",
        "/api/v1/account/password",
        SignedIn(),
        update_password,
        "Change a password; all sessions of the account end.",
        request_schema="PasswordRequest",
        response_schema="Nothing",
        tag=OPENAPI_TAG,
        operation_id="AccountService_UpdatePassword",
    ),
    Route(
        "GET",
        "/api/v1/account/{name}",
        SignedIn(),
        get_account,
        "Get an account.",
        response_schema="Account",
        tag=OPENAPI_TAG,
        operation_id="AccountService_GetAccount",
    ),
    Route(
        "POST",
        "/api/v1/account/{name}/token",
        SignedIn(),
        create_token,
        "Create a token. The token is returned only once.",
        request_schema="TokenRequest",
        response_schema="TokenResponse",
        tag=OPENAPI_TAG,
        operation_id="AccountService_CreateToken",
    ),
    Route(
        "DELETE",
        "/api/v1/account/{name}/token/{id}",
        SignedIn(),
        delete_token,
        "Revoke a token.",
        response_schema="Nothing",
        tag=OPENAPI_TAG,
        operation_id="AccountService_DeleteToken",
    ),
)
