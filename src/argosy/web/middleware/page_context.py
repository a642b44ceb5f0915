"""Page context: the values of the layout of every page.

In: a request. Out: template values. Never: a secret; the CSRF token is that of this session only.
"""

from __future__ import annotations

from typing import Any

from argosy.web.page_templates import Frame
from argosy.web.preference_cookies import MAX_FAVOURITES, THEMES, read_preferences
from argosy.web.request import RequestContext


def build_frame_values(request: RequestContext) -> dict[str, Any]:
    options, caller, cookies = request.options, request.caller, read_preferences(request)
    frame = Frame(
        path=request.path,
        query=tuple((name, value) for name in request.query for value in request.query.get_all(name)),
        csrf=request.csrf_token,
        caller="" if caller.is_nobody else caller.display_name,
        theme=cookies["theme"] if cookies.get("theme") in THEMES else "",
        has_keys=cookies.get("keys") != "off",
        is_simulated=options.is_simulated,
        title=options.title,
        version=options.version,
        favourites=frozenset(cookies.get("favourites", "").split("~")[:MAX_FAVOURITES]) - {""},
        mark=request.live_position,
    )
    return {"frame": frame}
