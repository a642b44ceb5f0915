"""Set-Cookie headers of sessions and of pending SSO logins.

In: whether TLS is used, a token. Out: headers. Never: a cookie that scripts or other sites can use.
"""

from __future__ import annotations

from typing import Final

from argosy.web.auth.oidc_login import LOGIN_TIMEOUT_SECONDS
from argosy.web.auth.signed_tokens import DAY_SECONDS

SSO_COOKIE_SUFFIX: Final = "-sign-in"  # suffix of the name of the SSO login cookie
Header = tuple[str, str]


def build_session_cookie(name: str, token: str, *, is_tls: bool) -> Header:
    return _build_cookie(name, token, DAY_SECONDS, "Strict", is_tls)


def build_sso_cookie(name: str, value: str, *, is_tls: bool) -> Header:
    """Lax, because the provider's page redirects back: browsers send a Strict cookie only from our own pages."""
    return _build_cookie(name + SSO_COOKIE_SUFFIX, value, LOGIN_TIMEOUT_SECONDS, "Lax", is_tls)


def build_deleted_cookie(name: str, *, is_tls: bool) -> Header:
    return _build_cookie(name, "", 0, "Strict", is_tls)


def _build_cookie(name: str, value: str, seconds: int, same_site: str, is_tls: bool) -> Header:
    secure = "; Secure" if is_tls else ""
    return ("set-cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}")
