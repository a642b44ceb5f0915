"""Cookies of a session, and of a browser on its way to an identity provider.

In: how this server is reached, a token. Out: headers. Never: one that a script or another site's page can use.
"""

from __future__ import annotations

from typing import Final

from argosy.web.auth.oidc_login import SECONDS
from argosy.web.auth.tokens import DAY

AWAY: Final = "-sign-in"  # what the other cookie's name ends with
Header = tuple[str, str]


def session(name: str, token: str, *, is_tls: bool) -> Header:
    return _cookie(name, token, DAY, "Strict", is_tls)


def away(name: str, value: str, *, is_tls: bool) -> Header:
    """The provider's page leads back: a browser sends a strict one only where our own page did."""
    return _cookie(name + AWAY, value, SECONDS, "Lax", is_tls)


def dropped(name: str, *, is_tls: bool) -> Header:
    return _cookie(name, "", 0, "Strict", is_tls)


def _cookie(name: str, value: str, seconds: int, same_site: str, is_tls: bool) -> Header:
    secure = "; Secure" if is_tls else ""
    return ("set-cookie", f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}")
