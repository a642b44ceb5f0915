"""Page context: the values of the layout of every page.

In: a request. Out: template values. Never: a secret; the CSRF token is that of this session only.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.web.page_templates import Frame
from argosy.web.request import Asked

THEMES: Final = ("light", "dark")
MOST_FAVOURITES: Final = 200


def frame_values(asked: Asked) -> dict[str, Any]:
    options, caller, kept = asked.site.options, asked.caller, preferences(asked)
    frame = Frame(
        path=asked.path,
        query=tuple((name, value) for name in asked.query for value in asked.query.all(name)),
        csrf=asked.csrf,
        caller="" if caller.is_nobody else caller.shown_name,
        theme=kept["theme"] if kept.get("theme") in THEMES else "",
        has_keys=kept.get("keys") != "off",
        is_simulated=options.is_simulated,
        title=options.title,
        version=options.version,
        favourites=frozenset(kept.get("favourites", "").split("~")[:MOST_FAVOURITES]) - {""},
        mark=asked.kept.get("mark", ""),
    )
    return {"frame": frame}


def preferences(asked: Asked) -> dict[str, str]:
    """Return display preferences from cookies, which are not secret and do not affect anything else."""
    pairs = (pair.strip().partition("=") for pair in asked.headers.get("cookie", "").split(";"))
    return {name.removeprefix("argosy-"): value for name, _, value in pairs if name in COOKIES}


COOKIES: Final = ("argosy-theme", "argosy-keys", "argosy-favourites")
