"""Display preferences: theme, keyboard shortcuts and favourites, stored in cookies.

In: a form. Out: cookies, and a redirect back. Never: stores anything on the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.web.preference_cookies import MAX_FAVOURITES, THEMES, read_preferences
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.responses import RedirectResponse
from argosy.web.route import Route, SignedIn
from argosy.web.template_filters import get_safe_path

YEAR_SECONDS: Final = 365 * 86400
MAX_COOKIE_CHARACTERS: Final = 3500  # of the favourites cookie; browsers allow 4096
APPLICATION_PATTERN: Final = re.compile(r"[a-z0-9.-]{1,253}/[a-z0-9.-]{1,253}")


async def save_preferences(request: RequestContext) -> RedirectResponse:
    form = await request.read_form()
    attributes = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if request.options.is_tls else "")
    headers = tuple(("set-cookie", cookie + attributes) for cookie in _build_cookies(request, form))
    return RedirectResponse(get_safe_path(form.get_text("back")) or "/apps", headers=headers)


def _build_cookies(request: RequestContext, form: QueryParameters) -> Iterator[str]:
    if theme := form.get_text("theme"):
        yield _format_cookie("theme", theme if theme in THEMES else "")
    if keys := form.get_text("keys"):
        yield _format_cookie("keys", "off" if keys == "off" else "")
    if APPLICATION_PATTERN.fullmatch(name := form.get_text("favourite")):
        favourites = [
            favourite for favourite in read_preferences(request).get("favourites", "").split("~") if favourite
        ]
        others = [favourite for favourite in favourites if favourite != name]
        new_favourites = others if name in favourites else [name, *others][:MAX_FAVOURITES]
        yield _format_cookie("favourites", "~".join(new_favourites)[:MAX_COOKIE_CHARACTERS])


def _format_cookie(name: str, value: str) -> str:
    return f"argosy-{name}={value}; Max-Age={YEAR_SECONDS if value else 0}"


ROUTES: Final = (
    Route("POST", "/preferences", SignedIn(), save_preferences, "Store display preferences.", is_change=False),
)
