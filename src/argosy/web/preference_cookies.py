"""Display preferences that a browser stores in cookies: theme, keyboard shortcuts, favourites.

In: a request. Out: preferences by name. Never: trusts them with anything but the look of a page.
"""

from __future__ import annotations

from typing import Final

from argosy.web.request import RequestContext

THEMES: Final = ("light", "dark")
MAX_FAVOURITES: Final = 200
PREFERENCE_COOKIES: Final = ("argosy-theme", "argosy-keys", "argosy-favourites")


def read_preferences(request: RequestContext) -> dict[str, str]:
    """Return display preferences from cookies, which are not secret and do not affect anything else."""
    pairs = (pair.strip().partition("=") for pair in request.headers.get("cookie", "").split(";"))
    return {name.removeprefix("argosy-"): value for name, _, value in pairs if name in PREFERENCE_COOKIES}
