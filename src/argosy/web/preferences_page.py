"""Display preferences: theme, keyboard shortcuts and favourites, stored in cookies.

In: a form. Out: cookies, and a redirect back. Never: stores anything on the server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.web.middleware.page_context import MOST_FAVOURITES, THEMES, preferences
from argosy.web.request import Asked, Query
from argosy.web.responses import Redirect
from argosy.web.route import Route, SignedIn
from argosy.web.template_filters import local

A_YEAR: Final = 365 * 86400
MOST_LETTERS: Final = 3500  # of the favourites cookie; browsers allow 4096
NAMED: Final = re.compile(r"[a-z0-9.-]{1,253}/[a-z0-9.-]{1,253}")


async def prefer(asked: Asked) -> Redirect:
    form = await asked.form()
    ending = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if asked.site.options.is_tls else "")
    kept = tuple(("set-cookie", cookie + ending) for cookie in _cookies(asked, form))
    return Redirect(local(form.text("back")) or "/apps", headers=kept)


def _cookies(asked: Asked, form: Query) -> Iterator[str]:
    if theme := form.text("theme"):
        yield _cookie("theme", theme if theme in THEMES else "")
    if keys := form.text("keys"):
        yield _cookie("keys", "off" if keys == "off" else "")
    if NAMED.fullmatch(name := form.text("favourite")):
        before = [each for each in preferences(asked).get("favourites", "").split("~") if each]
        others = [each for each in before if each != name]
        after = others if name in before else [name, *others][:MOST_FAVOURITES]
        yield _cookie("favourites", "~".join(after)[:MOST_LETTERS])


def _cookie(name: str, value: str) -> str:
    return f"argosy-{name}={value}; Max-Age={A_YEAR if value else 0}"


ROUTES: Final = (Route("POST", "/preferences", SignedIn(), prefer, "Store display preferences.", is_change=False),)
