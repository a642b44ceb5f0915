"""Headers of every response, including errors and files.

In: whether TLS is used, the headers of the route. Out: all headers. Never: leaves one of these out; sends `Server`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.web.responses import FRAME_SECURITY_POLICY, RedirectResponse

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
COMMON_HEADERS: Final = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),  # without a referrer, browsers send `Origin: null` for forms
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
IMMUTABLE_CACHE_CONTROL: Final = "public, max-age=31536000, immutable"


def build_headers(
    route_headers: Iterable[tuple[str, str]], *, is_tls: bool, is_immutable: bool = False
) -> list[tuple[str, str]]:
    lowercase_headers = [(name.lower(), value) for name, value in route_headers]
    is_framed = any(
        name == "content-security-policy" and value == FRAME_SECURITY_POLICY for name, value in lowercase_headers
    )
    headers = [(name, value) for name, value in lowercase_headers if name not in _RESERVED_HEADERS]
    headers += COMMON_HEADERS
    headers.append(("content-security-policy", FRAME_SECURITY_POLICY if is_framed else CONTENT_SECURITY_POLICY))
    headers.append(("x-frame-options", "SAMEORIGIN" if is_framed else "DENY"))
    headers.append(("cache-control", IMMUTABLE_CACHE_CONTROL if is_immutable else "no-store"))
    if is_tls:
        headers.append(("strict-transport-security", "max-age=31536000"))
    return headers


_RESERVED_HEADERS: Final = {
    *(name for name, _ in COMMON_HEADERS), "content-security-policy", "x-frame-options", "cache-control",
    "strict-transport-security",
}  # fmt: skip


def get_safe_location(answer: RedirectResponse) -> str:
    """Return a path on this server; another URL only if the route allows it, and never a script."""
    location = answer.location
    if any(ord(character) < 0x21 or ord(character) > 0x7E or character == "\\" for character in location):
        return "/"
    if location.startswith("/") and not location.startswith("//"):
        return location
    return location if answer.is_external and location.startswith(("https://", "http://")) else "/"
