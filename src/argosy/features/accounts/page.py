"""`/settings/accounts`: accounts, the current user, and API tokens.

In: a request. Out: accounts that the caller may see; a new token, once. Never: shows a password, a hash, or an
existing token.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from argosy.gitops.policy.rbac import RbacRequester
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.web.auth.account_password_token_store import AccountStore
from argosy.web.auth.accounts import API_KEY, Account
from argosy.web.caller_application_service import build_service
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse, RedirectResponse
from argosy.web.route import FilteredList, Route, SignedIn
from argosy.web.settings_overview_page import SETTINGS_BREADCRUMB

PAGE_PATH: Final = "/settings/accounts"
TOKEN_LIFETIMES: Final = ((30, "30 days"), (90, "90 days"), (365, "a year"), (1, "a day"))


async def render_accounts_page(request: RequestContext) -> PageResponse:
    return PageResponse("accounts/accounts.html", await build_page_values(request))


async def build_page_values(request: RequestContext, token: str = "", token_account: str = "") -> dict[str, Any]:
    accounts = await _open_account_book(request).list_accounts()
    visible_accounts = [account for account in accounts.values() if can_access_account(request, "get", account.name)]
    caller = request.caller
    return {
        "title": "Accounts",
        "section": "settings",
        "state": "",
        "crumbs": [SETTINGS_BREADCRUMB],
        "rows": [
            _build_row(request, account) for account in sorted(visible_accounts, key=lambda account: account.name)
        ],
        "me": {
            "name": caller.display_name,
            "kind": {"person": "user of the identity provider", "project": "project role"}.get(
                caller.kind, "local account"
            ),
            "groups": caller.groups,
            "ends": format_timestamp(datetime.fromtimestamp(caller.expires, UTC)) if caller.expires else "",
        },
        "token": token,
        "token_of": token_account,
        "days": TOKEN_LIFETIMES,
        "commands": ["argosy account list", "argosy account update-password"],
    }


def can_access_account(request: RequestContext, action: str, name: str) -> bool:
    """argo: True if the caller has the permission, or is this account itself."""
    is_self = request.caller.kind == "account" and request.caller.name == name
    return is_self or request.is_allowed("accounts", action, name)


def _build_row(request: RequestContext, account: Account) -> dict[str, Any]:
    may_change = can_access_account(request, "update", account.name)
    return {
        "name": account.name,
        "is_me": request.caller.kind == "account" and request.caller.name == account.name,
        "is_enabled": account.is_enabled,
        "capabilities": account.capabilities,
        "has_password": bool(account.password_hash),
        "tokens": [
            {"id": token.id, "issued": _format_time(token.issued_at), "expires": _format_time(token.expires_at)}
            for token in account.tokens
        ],
        "may_change": may_change,
        "may_add": may_change and account.has_capability(API_KEY),
    }


def _format_time(seconds: int) -> str:
    return format_timestamp(datetime.fromtimestamp(seconds, UTC)) if seconds else ""


def _open_account_book(request: RequestContext) -> AccountStore:
    app_service = build_service(request)
    return AccountStore(app_service.cluster, app_service.control_namespace)


async def add_token(request: RequestContext) -> PageResponse:
    """Create a token and show it; this response is the only place where it appears."""
    form, name = await request.read_form(), request.path_parameters["name"]
    _require_update(request, name)
    days = form.get_int("days", 30, minimum=1, maximum=3650)
    limits = request.authenticator.get_token_limits(request.caller, RbacRequester(name))
    token = await _open_account_book(request).add_token(name, lifetime_seconds=days * 86400, limits=limits)
    return PageResponse("accounts/accounts.html", await build_page_values(request, token, name))


async def revoke_token(request: RequestContext) -> RedirectResponse:
    form, name = await request.read_form(), request.path_parameters["name"]
    _require_update(request, name)
    await _open_account_book(request).remove_token(name, form.get_text("id"))
    return RedirectResponse(f"{PAGE_PATH}?said=revoked")


def _require_update(request: RequestContext, name: str) -> None:
    if not can_access_account(request, "update", name):
        request.require_permission("accounts", "update", name)


ROUTES = (
    Route("GET", PAGE_PATH, FilteredList("accounts", "get"), render_accounts_page, "Accounts, as a page."),
    Route(
        "POST", f"{PAGE_PATH}/{{name}}/tokens", SignedIn(), add_token, "Create a token. The token is shown only once."
    ),
    Route("POST", f"{PAGE_PATH}/{{name}}/tokens/revoke", SignedIn(), revoke_token, "Revoke a token."),
)
