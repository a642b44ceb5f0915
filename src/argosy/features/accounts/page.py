"""`/settings/accounts`: accounts, the current user, and API tokens.

In: a request. Out: accounts that the caller may see; a new token, once. Never: shows a password, a hash, or an
existing token.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from argosy.gitops.policy.rbac import Subjects
from argosy.kube.objects.timestamps import written
from argosy.web.auth.account_changes import AccountBook
from argosy.web.auth.accounts import API_KEY, Account
from argosy.web.caller_clients import desk_of
from argosy.web.request import Asked
from argosy.web.responses import Page, Redirect
from argosy.web.route import Filtered, Route, SignedIn
from argosy.web.settings_page import CRUMB

HERE: Final = "/settings/accounts"
DAYS: Final = ((30, "30 days"), (90, "90 days"), (365, "a year"), (1, "a day"))


async def page(asked: Asked) -> Page:
    return Page("accounts/accounts.html", await values(asked))


async def values(asked: Asked, token: str = "", of: str = "") -> dict[str, Any]:
    known = await _book(asked).all()
    shown = [each for each in known.values() if may(asked, "get", each.name)]
    caller = asked.caller
    return {
        "title": "Accounts",
        "section": "settings",
        "state": "",
        "crumbs": [CRUMB],
        "rows": [_row(asked, each) for each in sorted(shown, key=lambda each: each.name)],
        "me": {
            "name": caller.shown_name,
            "kind": {"person": "user of the identity provider", "project": "project role"}.get(
                caller.kind, "local account"
            ),
            "groups": caller.groups,
            "ends": written(datetime.fromtimestamp(caller.expires, UTC)) if caller.expires else "",
        },
        "token": token,
        "token_of": of,
        "days": DAYS,
        "commands": ["argosy account list", "argosy account update-password"],
    }


def may(asked: Asked, action: str, name: str) -> bool:
    """argo: True if the caller has the permission, or is this account itself."""
    is_self = asked.caller.kind == "account" and asked.caller.name == name
    return is_self or asked.may("accounts", action, name)


def _row(asked: Asked, account: Account) -> dict[str, Any]:
    may_change = may(asked, "update", account.name)
    return {
        "name": account.name,
        "is_me": asked.caller.kind == "account" and asked.caller.name == account.name,
        "is_enabled": account.is_enabled,
        "capabilities": account.capabilities,
        "has_password": bool(account.password),
        "tokens": [
            {"id": each.id, "issued": _time(each.issued), "expires": _time(each.expires)} for each in account.tokens
        ],
        "may_change": may_change,
        "may_add": may_change and account.can(API_KEY),
    }


def _time(seconds: int) -> str:
    return written(datetime.fromtimestamp(seconds, UTC)) if seconds else ""


def _book(asked: Asked) -> AccountBook:
    desk = desk_of(asked)
    return AccountBook(desk.cluster, desk.control)


async def added(asked: Asked) -> Page:
    """Create a token and show it; this response is the only place where it appears."""
    form, name = await asked.form(), asked.values["name"]
    _require(asked, name)
    days = form.number("days", 30, least=1, most=3650)
    limits = asked.site.identities.token_limits(asked.caller, Subjects(name))
    token = await _book(asked).add_token(name, seconds=days * 86400, limits=limits)
    return Page("accounts/accounts.html", await values(asked, token, name))


async def revoked(asked: Asked) -> Redirect:
    form, name = await asked.form(), asked.values["name"]
    _require(asked, name)
    await _book(asked).remove_token(name, form.text("id"))
    return Redirect(f"{HERE}?said=revoked")


def _require(asked: Asked, name: str) -> None:
    if not may(asked, "update", name):
        asked.require("accounts", "update", name)


ROUTES = (
    Route("GET", HERE, Filtered("accounts", "get"), page, "Accounts, as a page."),
    Route("POST", f"{HERE}/{{name}}/tokens", SignedIn(), added, "Create a token. The token is shown only once."),
    Route("POST", f"{HERE}/{{name}}/tokens/revoke", SignedIn(), revoked, "Revoke a token."),
)
