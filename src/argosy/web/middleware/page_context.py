"""Page context: the values of the layout of every page.

In: a request. Out: template values. Never: a secret; the CSRF token is that of this session only.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.web.page_templates import Frame
from argosy.web.request import RequestContext

THEMES: Final = ("light", "dark")
MAX_FAVOURITES: Final = 200


def build_frame_values(request: RequestContext) -> dict[str, Any]:
    options, caller, cookies = request.site.options, request.caller, read_preferences(request)
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
        mark=request.state.get("mark", ""),
    )
    return {"frame": frame}


def read_preferences(request: RequestContext) -> dict[str, str]:
    """Return display preferences from cookies, which are not secret and do not affect anything else."""
    pairs = (pair.strip().partition("=") for pair in request.headers.get("cookie", "").split(";"))
    return {name.removeprefix("argosy-"): value for name, _, value in pairs if name in PREFERENCE_COOKIES}


PREFERENCE_COOKIES: Final = ("argosy-theme", "argosy-keys", "argosy-favourites")
