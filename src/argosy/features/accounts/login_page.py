"""Login and logout pages: password, one-time code, OIDC identity provider.

In: browser requests. Out: a session cookie, and a redirect to the requested page. Never: shows text from the URL;
redirects to another site (open redirect).
"""

from __future__ import annotations

import base64
import secrets
from http.cookies import CookieError, SimpleCookie
from operator import xor
from typing import Final
from urllib.parse import quote

from argosy.web.auth import cookies
from argosy.web.auth.caller import BadLogin, Shown
from argosy.web.caller_clients import account_called
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page, Redirect
from argosy.web.route import Public, Route, SignedIn

HOME: Final = "/apps"
LONGEST: Final = 2_000
MOST: Final = 16 << 10  # bytes of the login form
NOT_AFTERWARDS: Final = ("/login", "/logout", "/enter", "/auth/", "/api/", "/live")
FAULTS: Final = {
    "code": "This link was already used or has expired. Run 'argosy open' to get a new one.",
    "provider": "Login with the identity provider failed. Try again, or contact your administrator.",
    "refused": "Invalid username or password, or too many failed attempts. After too many attempts, wait five minutes.",
}
NO_SESSION: Final = "login happens before a session exists"


async def show(asked: Asked) -> Answer:
    wanted = own_page(asked.query.text("next"))
    if asked.caller.id:
        return Redirect(wanted)
    identities = asked.site.identities
    accounts = identities.standing.accounts.values()
    values = {
        "title": "Sign in",
        "next": "" if wanted == HOME else veiled(wanted),
        "fault": FAULTS.get(asked.query.text("error"), ""),
        "provider": identities.signing_in.provider_name,
        "is_provider_unusable": bool(identities.standing.provider_fault),
        "provider_page": f"/auth/login?next={veiled(wanted)}",
        "has_passwords": any(each.can("login") and each.password for each in accounts),
        "is_loopback": asked.site.options.is_loopback,
    }
    return Page("accounts/login.html", values)


async def sign_in(asked: Asked) -> Answer:
    form = await asked.form()
    wanted = own_page(unveiled(form.text("next")))
    identities, name = asked.site.identities, form.text("username")
    try:
        token = await identities.login(name, form.text("password"), is_browser=True, peer=asked.peer)
    except BadLogin:
        asked.noted(account_called(asked, name), 401)
        return _again("refused", wanted)
    asked.noted(name)
    return Redirect(wanted, headers=(_session(asked, token),))


async def enter(asked: Asked) -> Answer:
    try:
        token = await asked.site.identities.enter(asked.query.text("code"))
    except BadLogin:
        asked.noted("", 401)
        return Redirect(HOME) if asked.caller.id else _again("code", HOME)
    return await _arrived(asked, token, HOME)


async def leave(asked: Asked) -> Answer:
    """Redirect to the identity provider. argo: `return_url` is the requested page."""
    wanted = own_page(unveiled(asked.query.text("next")) or asked.query.text("return_url"))
    identities, is_tls = asked.site.identities, asked.site.options.is_tls
    try:
        going = await identities.signing_in.leave(_callback(asked), wanted)
    except BadLogin:
        return _again("provider", wanted)
    kept = cookies.away(identities.cookie, going.cookie, is_tls=is_tls)
    return Redirect(going.where, is_outside=True, headers=(kept,))


async def come_back(asked: Asked) -> Answer:
    identities = asked.site.identities
    kept = _cookie(asked, identities.cookie + cookies.AWAY)
    try:
        back = await identities.signing_in.come_back(
            kept, asked.query.text("state"), asked.query.text("code"), asked.query.text("iss")
        )
    except BadLogin:
        asked.noted("", 401)
        return _again("provider", HOME)
    return await _arrived(asked, back.token, own_page(back.next))


async def sign_out(asked: Asked) -> Answer:
    identities = asked.site.identities
    await identities.logout(asked.caller)
    gone = cookies.dropped(identities.cookie, is_tls=asked.site.options.is_tls)
    return Redirect("/login?said=left", headers=(gone,))


def own_page(wanted: str) -> str:
    """The path to redirect to after login; the application list if `wanted` is not a page of this server."""
    if len(wanted) > LONGEST or not wanted.isascii() or not wanted.isprintable() or set(wanted) & {"\\", " ", ";", ","}:
        return HOME
    if not wanted.startswith("/") or wanted.startswith("//"):
        return HOME
    return HOME if wanted == "/" or wanted.startswith(NOT_AFTERWARDS) else wanted


def veiled(text: str) -> str:
    """Mask untrusted text with a random pad: if it were echoed as is, redaction would replace a correct guess of a
    secret and so confirm it."""
    raw = text.encode()
    pad = secrets.token_bytes(len(raw))
    return base64.urlsafe_b64encode(pad + bytes(map(xor, pad, raw))).decode().rstrip("=")


def unveiled(text: str) -> str:
    """Unmask text from `mask_text`; a plain path is returned as is."""
    if not text or text.startswith("/"):
        return text
    try:
        both = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        half = len(both) // 2
        return bytes(map(xor, both[:half], both[half:])).decode()
    except ValueError:
        return ""


def _again(fault: str, wanted: str) -> Redirect:
    back = "" if wanted == HOME else f"&next={quote(wanted, safe='')}"
    return Redirect(f"/login?error={fault}{back}")


async def _arrived(asked: Asked, token: str, where: str) -> Page:
    """Set the session on an intermediate page: on a redirect from another site, browsers send no SameSite cookie."""
    caller = await asked.site.identities.identify(Shown(bearer=token))
    asked.noted(caller.name if caller else "")
    gone = cookies.dropped(asked.site.identities.cookie + cookies.AWAY, is_tls=asked.site.options.is_tls)
    headers = (_session(asked, token), gone, ("refresh", f"0; url={where}"))
    return Page("accounts/signed_in.html", {"title": "Signed in", "where": where}, headers=headers)


def _session(asked: Asked, token: str) -> tuple[str, str]:
    return cookies.session(asked.site.identities.cookie, token, is_tls=asked.site.options.is_tls)


def _callback(asked: Asked) -> str:
    """argo: callback URL below `url` of argocd-cm, else below the Host header, which the middleware has checked."""
    scheme = "https" if asked.site.options.is_tls else "http"
    named = asked.site.options.origin or asked.site.identities.standing.settings.get("url", "").strip().rstrip("/")
    host = asked.headers.get("host", "")
    return f"{named or f'{scheme}://{host}'}/auth/callback"


def _cookie(asked: Asked, name: str) -> str:
    try:
        found = SimpleCookie(asked.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


ROUTES = (
    Route("GET", "/auth/callback", Public(NO_SESSION), come_back, "OIDC callback from the identity provider."),
    Route("GET", "/auth/login", Public(NO_SESSION), leave, "Redirect to the identity provider."),
    Route("GET", "/enter", Public(NO_SESSION), enter, "Log in with a one-time code."),
    Route("GET", "/login", Public(NO_SESSION), show, "Login page."),
    Route("POST", "/login", Public(NO_SESSION), sign_in, "Log in with a password.", most=MOST),
    Route("POST", "/logout", SignedIn(), sign_out, "Log out."),
)
