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

from argosy.web.auth import login_set_cookie_headers
from argosy.web.auth.caller import BadLogin, RequestCredentials
from argosy.web.caller_application_service import get_audit_account_name
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse, RedirectResponse, WebResponse
from argosy.web.route import Public, Route, SignedIn

HOME_PATH: Final = "/apps"
MAX_PATH_CHARACTERS: Final = 2_000
MAX_FORM_BYTES: Final = 16 << 10  # bytes of the login form
EXCLUDED_REDIRECT_PREFIXES: Final = ("/login", "/logout", "/enter", "/auth/", "/api/", "/live")
LOGIN_FAULTS: Final = {
    "code": "This link was already used or has expired. Run 'argosy open' to get a new one.",
    "provider": "Login with the identity provider failed. Try again, or contact your administrator.",
    "refused": "Invalid username or password, or too many failed attempts. After too many attempts, wait five minutes.",
}
PUBLIC_REASON: Final = "login happens before a session exists"


async def render_login_page(request: RequestContext) -> WebResponse:
    redirect_path = safe_redirect_path(request.query.get_text("next"))
    if request.caller.id:
        return RedirectResponse(redirect_path)
    identities = request.authenticator
    accounts = identities.state.accounts.values()
    values = {
        "title": "Sign in",
        "next": "" if redirect_path == HOME_PATH else encode_with_random_pad(redirect_path),
        "fault": LOGIN_FAULTS.get(request.query.get_text("error"), ""),
        "provider": identities.sso_login.provider_name,
        "is_provider_unusable": bool(identities.state.provider_error),
        "provider_page": f"/auth/login?next={encode_with_random_pad(redirect_path)}",
        "has_passwords": any(account.has_capability("login") and account.password_hash for account in accounts),
        "is_loopback": request.options.is_loopback,
    }
    return PageResponse("accounts/login.html", values)


async def log_in_with_password(request: RequestContext) -> WebResponse:
    form = await request.read_form()
    redirect_path = safe_redirect_path(decode_with_random_pad(form.get_text("next")))
    identities, name = request.authenticator, form.get_text("username")
    try:
        token = await identities.login(name, form.get_text("password"), is_browser=True, peer=request.peer)
    except BadLogin:
        request.add_audit_entry(get_audit_account_name(request, name), 401)
        return _redirect_to_login("refused", redirect_path)
    request.add_audit_entry(name)
    return RedirectResponse(redirect_path, headers=(_build_session_cookie(request, token),))


async def log_in_with_one_time_code(request: RequestContext) -> WebResponse:
    try:
        token = await request.authenticator.login_with_one_time_code(request.query.get_text("code"))
    except BadLogin:
        request.add_audit_entry("", 401)
        return RedirectResponse(HOME_PATH) if request.caller.id else _redirect_to_login("code", HOME_PATH)
    return await _finish_login(request, token, HOME_PATH)


async def redirect_to_provider(request: RequestContext) -> WebResponse:
    """Redirect to the identity provider. argo: `return_url` is the requested page."""
    redirect_path = safe_redirect_path(
        decode_with_random_pad(request.query.get_text("next")) or request.query.get_text("return_url")
    )
    identities, is_tls = request.authenticator, request.options.is_tls
    try:
        provider_redirect = await identities.sso_login.start_login(_build_callback_url(request), redirect_path)
    except BadLogin:
        return _redirect_to_login("provider", redirect_path)
    state_cookie = login_set_cookie_headers.build_sso_cookie(identities.cookie, provider_redirect.cookie, is_tls=is_tls)
    return RedirectResponse(provider_redirect.location, is_external=True, headers=(state_cookie,))


async def handle_provider_callback(request: RequestContext) -> WebResponse:
    identities = request.authenticator
    state_cookie = _read_cookie(request, identities.cookie + login_set_cookie_headers.SSO_COOKIE_SUFFIX)
    try:
        login_result = await identities.sso_login.finish_login(
            state_cookie, request.query.get_text("state"), request.query.get_text("code"), request.query.get_text("iss")
        )
    except BadLogin:
        request.add_audit_entry("", 401)
        return _redirect_to_login("provider", HOME_PATH)
    return await _finish_login(request, login_result.token, safe_redirect_path(login_result.next))


async def log_out(request: RequestContext) -> WebResponse:
    identities = request.authenticator
    await identities.logout(request.caller)
    expired_cookie = login_set_cookie_headers.build_deleted_cookie(identities.cookie, is_tls=request.options.is_tls)
    return RedirectResponse("/login?said=left", headers=(expired_cookie,))


def safe_redirect_path(path: str) -> str:
    """The path to redirect to after login; the application list if `path` is not a page of this server."""
    if (
        len(path) > MAX_PATH_CHARACTERS
        or not path.isascii()
        or not path.isprintable()
        or set(path) & {"\\", " ", ";", ","}
    ):
        return HOME_PATH
    if not path.startswith("/") or path.startswith("//"):
        return HOME_PATH
    return HOME_PATH if path == "/" or path.startswith(EXCLUDED_REDIRECT_PREFIXES) else path


def encode_with_random_pad(text: str) -> str:
    """Mask untrusted text with a random pad: if it were echoed as is, redaction would replace a correct guess of a
    secret and so confirm it."""
    raw = text.encode()
    pad = secrets.token_bytes(len(raw))
    return base64.urlsafe_b64encode(pad + bytes(map(xor, pad, raw))).decode().rstrip("=")


def decode_with_random_pad(text: str) -> str:
    """Unmask text from `mask_text`; a plain path is returned as is."""
    if not text or text.startswith("/"):
        return text
    try:
        pad_and_masked = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        half = len(pad_and_masked) // 2
        return bytes(map(xor, pad_and_masked[:half], pad_and_masked[half:])).decode()
    except ValueError:
        return ""


def _redirect_to_login(fault: str, redirect_path: str) -> RedirectResponse:
    query = "" if redirect_path == HOME_PATH else f"&next={quote(redirect_path, safe='')}"
    return RedirectResponse(f"/login?error={fault}{query}")


async def _finish_login(request: RequestContext, token: str, redirect_path: str) -> PageResponse:
    """Set the session on an intermediate page: on a redirect from another site, browsers send no SameSite cookie."""
    caller = await request.authenticator.identify(RequestCredentials(bearer=token))
    request.add_audit_entry(caller.name if caller else "")
    expired_cookie = login_set_cookie_headers.build_deleted_cookie(
        request.authenticator.cookie + login_set_cookie_headers.SSO_COOKIE_SUFFIX, is_tls=request.options.is_tls
    )
    headers = (_build_session_cookie(request, token), expired_cookie, ("refresh", f"0; url={redirect_path}"))
    return PageResponse("accounts/signed_in.html", {"title": "Signed in", "where": redirect_path}, headers=headers)


def _build_session_cookie(request: RequestContext, token: str) -> tuple[str, str]:
    return login_set_cookie_headers.build_session_cookie(
        request.authenticator.cookie, token, is_tls=request.options.is_tls
    )


def _build_callback_url(request: RequestContext) -> str:
    """argo: callback URL below `url` of argocd-cm, else below the Host header, which the middleware has checked."""
    scheme = "https" if request.options.is_tls else "http"
    base_url = request.options.origin or request.authenticator.state.settings.get("url", "").strip().rstrip("/")
    host = request.headers.get("host", "")
    return f"{base_url or f'{scheme}://{host}'}/auth/callback"


def _read_cookie(request: RequestContext, name: str) -> str:
    try:
        morsel = SimpleCookie(request.headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


ROUTES = (
    Route(
        "GET",
        "/auth/callback",
        Public(PUBLIC_REASON),
        handle_provider_callback,
        "OIDC callback from the identity provider.",
    ),
    Route("GET", "/auth/login", Public(PUBLIC_REASON), redirect_to_provider, "Redirect to the identity provider."),
    Route("GET", "/enter", Public(PUBLIC_REASON), log_in_with_one_time_code, "Log in with a one-time code."),
    Route("GET", "/login", Public(PUBLIC_REASON), render_login_page, "Login page."),
    Route(
        "POST",
        "/login",
        Public(PUBLIC_REASON),
        log_in_with_password,
        "Log in with a password.",
        max_body_bytes=MAX_FORM_BYTES,
    ),
    Route("POST", "/logout", SignedIn(), log_out, "Log out."),
)
