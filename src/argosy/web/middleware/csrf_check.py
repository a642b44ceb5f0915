"""CSRF check: a change sent by a browser must come from a page of this server.

In: request headers and the kind of credential. Out: nothing, or RequestRejected with the reason. Never: trusts a cookie
alone.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Final

from argosy.web.auth.caller import Caller
from argosy.web.middleware.host_check import hostname
from argosy.web.request import Asked, csrf_token
from argosy.web.route import Public, Route
from argosy.web.site import LOOPBACK_HOSTS, Site

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
ANY: Final = "*"


class Foreign(Exception):
    def __init__(self, message: str, code: int = 403) -> None:
        super().__init__(message)
        self.message, self.code = message, code


def check_origin(site: Site, route: Route, headers: Mapping[str, str], caller: Caller) -> None:
    """Check Origin, Sec-Fetch-Site and Content-Type, before the body is read."""
    origin, fetched = headers.get("origin", ""), headers.get("sec-fetch-site", "")
    if origin and not _is_own(site, origin, headers):
        raise Foreign("cross-site request refused")
    if not route.changes:
        if route.is_api and caller.how == "cookie" and not origin and fetched in ("cross-site", "same-site"):
            raise Foreign("cross-site request refused")
        return
    _check_media(route, headers, caller)
    if caller.how == "bearer" or (ANY in route.media and isinstance(route.needs, Public)):
        return  # browsers do not add a bearer token by themselves
    if not origin and fetched != "same-origin":
        if caller.is_nobody and route.is_api and not fetched:
            return  # a login by a program; browsers send Origin or Sec-Fetch-Site
        raise Foreign("request refused: the Origin header is missing")


def _is_own(site: Site, origin: str, headers: Mapping[str, str]) -> bool:
    host, scheme = headers.get("host", ""), "https" if site.options.is_tls else "http"
    if origin in (f"{scheme}://{host}", site.options.origin or None):
        return True
    # A TLS proxy passes on the requested host name; on loopback, another server may own that name.
    return origin == f"https://{host}" and hostname(host) not in LOOPBACK_HOSTS


def _check_media(route: Route, headers: Mapping[str, str], caller: Caller) -> None:
    wanted = route.media or ((JSON,) if route.is_api else (FORM,))
    if ANY in wanted:
        return
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media in wanted:
        return
    if not media and caller.how == "bearer" and headers.get("content-length", "0") == "0":
        return  # no body
    raise Foreign(f"Content-Type is {media[:60] or 'missing'}; send {' or '.join(wanted)}", 415)


async def check_form(route: Route, asked: Asked) -> None:
    """Check the CSRF token of forms on pages."""
    if not route.changes or route.is_api or asked.caller.how in ("nobody", "bearer") or ANY in route.media:
        return
    given = (await asked.form()).text("csrf")
    if not hmac.compare_digest(given.encode(), csrf_token(asked.site, asked.caller).encode()):
        raise Foreign("invalid CSRF token; reload the page and submit the form again")
