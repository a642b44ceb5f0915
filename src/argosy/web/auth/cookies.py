"""Set-Cookie headers of sessions and of pending SSO logins.

In: whether TLS is used, a token. Out: headers. Never: a cookie that scripts or other sites can use.
"""

from __future__ import annotations

from typing import Final

from argosy.web.auth.oidc_login import SECONDS
from argosy.web.auth.tokens import DAY

AWAY: Final = "-sign-in"  # suffix of the name of the SSO login cookie
Header = tuple[str, str]


def session(name: str, token: str, *, is_tls: bool) -> Header:
    return _cookie(name, token, DAY, "Strict", is_tls)


def away(name: str, value: str, *, is_tls: bool) -> Header:
    """Lax, because the provider's page redirects back: browsers send a Strict cookie only from our own pages."""
    return _cookie(name + AWAY, value, SECONDS, "Lax", is_tls)


def dropped(name: str, *, is_tls: bool) -> Header:
    return _cookie(name, "", 0, "Strict", is_tls)


def _cookie(name: str, value: str, seconds: int, same_site: str, is_tls: bool) -> Header:
    secure = "; Secure" if is_tls else ""
    return ("set-cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}")
