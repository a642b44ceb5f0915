"""`/settings`: overview of the settings sections, and appearance.

In: a request. Out: the sections that the caller may open. Never: a Secret value.
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
    ("Projects", "/settings/projects", "cube", "what the Applications of a team may deploy, where and when"),
    ("Repositories", "/settings/repositories", "commit", "sources of manifests, and their connection state"),
    ("Clusters", "/settings/clusters", "environments", "destinations of Applications"),
    ("Health checks", "/settings/health", "heart", "health check of each kind, with an editor to try one"),
    ("Accounts", "/settings/accounts", "user", "users, permissions and API tokens"),
    ("Appearance", "/settings/appearance", "theme", "theme and keyboard shortcuts"),
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
        about = "problems, their causes, and the commands that fix them"
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
    Route("GET", "/settings", SignedIn(), page, "Settings page."),
    Route("GET", "/settings/appearance", SignedIn(), appearance, "Appearance settings page."),
)
