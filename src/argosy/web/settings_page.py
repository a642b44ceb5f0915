"""`/settings`: what an installation is set to, by section; how the page looks.

In: a request. Out: sections that the caller may open. Never: a value of a Secret.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.names import GroupKind
from argosy.web.object_lookup import PROJECT
from argosy.web.owned_objects import EVERYTHING
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Route, SignedIn

CRUMB: Final = ("Settings", "/settings")
SECRET: Final = GroupKind("", "Secret")
SECTIONS: Final = (
    ("Projects", "/settings/projects", "cube", "what Applications of a team may do, and when"),
    ("Repositories", "/settings/repositories", "commit", "where manifests come from, and whether they can be reached"),
    ("Clusters", "/settings/clusters", "environments", "where Applications are delivered to"),
    ("Health checks", "/settings/health", "heart", "how each kind is judged, with a box to try a check in"),
    ("Accounts", "/settings/accounts", "user", "who may sign in, who you are, tokens for tools"),
    ("Appearance", "/settings/appearance", "theme", "light or dark, keys on or off"),
)


async def page(asked: Asked) -> Page:
    return Page("settings.html", values(asked))


def values(asked: Asked) -> dict[str, Any]:
    projects = [each for each in asked.site.lookout.cache.list(PROJECT) if asked.may("projects", "get", _name(each))]
    counts = {"Projects": len(projects)}
    sections = [
        {"name": name, "url": url, "glyph": glyph, "about": about, "count": counts.get(name)}
        for name, url, glyph, about in SECTIONS
    ]
    if asked.may("applications", "get", EVERYTHING):
        about = "what is wrong here, why, and the command that mends it"
        sections.append({"name": "Doctor", "url": "/doctor", "glyph": "doctor", "about": about, "count": None})
    return {"title": "Settings", "section": "settings", "state": "", "sections": sections}


def _name(project: dict[str, Any]) -> str:
    return str(project["metadata"]["name"])


async def appearance(asked: Asked) -> Page:
    return Page(
        "settings_appearance.html",
        {"title": "Appearance", "section": "settings", "state": "", "crumbs": [CRUMB]},
    )


ROUTES = (
    Route("GET", "/settings", SignedIn(), page, "Settings, as a page."),
    Route("GET", "/settings/appearance", SignedIn(), appearance, "How the page looks."),
)
