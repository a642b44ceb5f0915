"""Whose page sent this: a change that a browser sends for somebody must come from a page of ours.

In: headers of a request, and how its sender is known. Out: nothing, or Foreign with what was wrong. Never: tells by a
cookie alone.
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
    """Before the body is read."""
    origin, fetched = headers.get("origin", ""), headers.get("sec-fetch-site", "")
    if origin and not _is_own(site, origin, headers):
        raise Foreign("the request comes from another site's page")
    if not route.changes:
        if route.is_api and caller.how == "cookie" and not origin and fetched in ("cross-site", "same-site"):
            raise Foreign("the request comes from another site's page")
        return
    _check_media(route, headers, caller)
    if caller.how == "bearer" or (ANY in route.media and isinstance(route.needs, Public)):
        return  # no browser adds that by itself
    if not origin and fetched != "same-origin":
        if caller.is_nobody and route.is_api and not fetched:
            return  # a program that logs in; what a browser sends says where it is from
        raise Foreign("the request does not say that it comes from a page of this server: Origin is missing")


def _is_own(site: Site, origin: str, headers: Mapping[str, str]) -> bool:
    host, scheme = headers.get("host", ""), "https" if site.options.is_tls else "http"
    if origin in (f"{scheme}://{host}", site.options.origin or None):
        return True
    # Whoever speaks TLS for us passes the name on that was asked for; on this machine another server may have it.
    return origin == f"https://{host}" and hostname(host) not in LOOPBACK_HOSTS


def _check_media(route: Route, headers: Mapping[str, str], caller: Caller) -> None:
    wanted = route.media or ((JSON,) if route.is_api else (FORM,))
    if ANY in wanted:
        return
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media in wanted:
        return
    if not media and caller.how == "bearer" and headers.get("content-length", "0") == "0":
        return  # nothing is sent
    raise Foreign(f"Content-Type is {media[:60] or 'missing'}; send {' or '.join(wanted)}", 415)


async def check_form(route: Route, asked: Asked) -> None:
    """Of pages: the form is one that this server made for this session."""
    if not route.changes or route.is_api or asked.caller.how in ("nobody", "bearer") or ANY in route.media:
        return
    given = (await asked.form()).text("csrf")
    if not hmac.compare_digest(given.encode(), csrf_token(asked.site, asked.caller).encode()):
        raise Foreign("the form is not of this session; load the page again and send it once more")
