"""CSRF check: a change sent by a browser must come from a page of this server.

In: request headers and the kind of credential. Out: nothing, or RequestRejected with the reason. Never: trusts a cookie
alone.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from argosy.web.auth.caller import Caller
from argosy.web.middleware.host_check import parse_hostname
from argosy.web.request import RequestContext, RequestRejected
from argosy.web.route import Public, Route
from argosy.web.serve_options import LOOPBACK_HOSTS, ServeOptions

JSON_MEDIA: Final = "application/json"
FORM_MEDIA: Final = "application/x-www-form-urlencoded"
ANY_MEDIA: Final = "*"


def check_origin(options: ServeOptions, route: Route, headers: Mapping[str, str], caller: Caller) -> None:
    """Check Origin, Sec-Fetch-Site and Content-Type, before the body is read."""
    origin, fetch_site = headers.get("origin", ""), headers.get("sec-fetch-site", "")
    if origin and not _is_own_origin(options, origin, headers):
        raise RequestRejected("cross-site request refused")
    if not route.is_mutating:
        if (
            route.is_api
            and caller.credential_kind == "cookie"
            and not origin
            and fetch_site in ("cross-site", "same-site")
        ):
            raise RequestRejected("cross-site request refused")
        return
    _check_content_type(route, headers, caller)
    if caller.credential_kind == "bearer" or (
        ANY_MEDIA in route.accepted_media_types and isinstance(route.access, Public)
    ):
        return  # browsers do not add a bearer token by themselves
    if not origin and fetch_site != "same-origin":
        if caller.is_nobody and route.is_api and not fetch_site:
            return  # a login by a program; browsers send Origin or Sec-Fetch-Site
        raise RequestRejected("request refused: the Origin header is missing")


def is_sent_by_browser(headers: Mapping[str, str]) -> bool:
    """False for programs. Browsers send Origin with every change, or Sec-Fetch-Site with every request."""
    return bool(headers.get("origin") or headers.get("sec-fetch-site"))


def _is_own_origin(options: ServeOptions, origin: str, headers: Mapping[str, str]) -> bool:
    host, scheme = headers.get("host", ""), "https" if options.is_tls else "http"
    if origin in (f"{scheme}://{host}", options.origin or None):
        return True
    # A TLS proxy passes on the requested host name; on loopback, another server may own that name.
    return origin == f"https://{host}" and parse_hostname(host) not in LOOPBACK_HOSTS


def _check_content_type(route: Route, headers: Mapping[str, str], caller: Caller) -> None:
    accepted = route.accepted_media_types or ((JSON_MEDIA,) if route.is_api else (FORM_MEDIA,))
    if ANY_MEDIA in accepted:
        return
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media in accepted:
        return
    if not media and caller.credential_kind == "bearer" and headers.get("content-length", "0") == "0":
        return  # no body
    raise RequestRejected(f"Content-Type is {media[:60] or 'missing'}; send {' or '.join(accepted)}", 415)


async def check_csrf_token(route: Route, request: RequestContext) -> None:
    """Check the CSRF token of forms on pages."""
    if (
        not route.is_mutating
        or route.is_api
        or request.caller.credential_kind in ("nobody", "bearer")
        or ANY_MEDIA in route.accepted_media_types
    ):
        return
    token = (await request.read_form()).get_text("csrf")
    if not hmac.compare_digest(token.encode(), request.csrf_token.encode()):
        raise RequestRejected("invalid CSRF token; reload the page and submit the form again")
