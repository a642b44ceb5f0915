"""Headers of every response, including errors and files.

In: whether TLS is used, the headers of the route. Out: all headers. Never: leaves one of these out; sends `Server`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.web.responses import Redirect

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
FRAMED: Final = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'self'"
"""For user content in a frame: no origin, no scripts, no requests."""

ALWAYS: Final = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),  # without a referrer, browsers send `Origin: null` for forms
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
KEPT: Final = "public, max-age=31536000, immutable"


def all_headers(own: Iterable[tuple[str, str]], *, is_tls: bool, is_fixed: bool = False) -> list[tuple[str, str]]:
    given = [(name.lower(), value) for name, value in own]
    framed = any(name == "content-security-policy" and value == FRAMED for name, value in given)
    made = [(name, value) for name, value in given if name not in _OURS]
    made += ALWAYS
    made.append(("content-security-policy", FRAMED if framed else POLICY))
    made.append(("x-frame-options", "SAMEORIGIN" if framed else "DENY"))
    made.append(("cache-control", KEPT if is_fixed else "no-store"))
    if is_tls:
        made.append(("strict-transport-security", "max-age=31536000"))
    return made


_OURS: Final = {
    *(name for name, _ in ALWAYS), "content-security-policy", "x-frame-options", "cache-control",
    "strict-transport-security",
}  # fmt: skip


def safe_location(answer: Redirect) -> str:
    """Return a path on this server; another URL only if the route allows it, and never a script."""
    where = answer.where
    if any(ord(sign) < 0x21 or ord(sign) > 0x7E or sign == "\\" for sign in where):
        return "/"
    if where.startswith("/") and not where.startswith("//"):
        return where
    return where if answer.is_outside and where.startswith(("https://", "http://")) else "/"
