"""`/settings`: overview of the settings sections, and appearance.

In: a request. Out: the sections that the caller may open. Never: a Secret value.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.kube.well_known_kinds import APP_PROJECT
from argosy.web.objects_of_visible_applications import ALL_APPLICATIONS
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import Route, SignedIn

SETTINGS_BREADCRUMB: Final = ("Settings", "/settings")
SECTIONS: Final = (
    ("Projects", "/settings/projects", "cube", "what the Applications of a team may deploy, where and when"),
    ("Repositories", "/settings/repositories", "commit", "sources of manifests, and their connection state"),
    ("Clusters", "/settings/clusters", "environments", "destinations of Applications"),
    ("Health checks", "/settings/health", "heart", "health check of each kind, with an editor to try one"),
    ("Accounts", "/settings/accounts", "user", "users, permissions and API tokens"),
    ("Appearance", "/settings/appearance", "theme", "theme and keyboard shortcuts"),
)


async def render_settings_page(request: RequestContext) -> PageResponse:
    return PageResponse("settings.html", build_settings_values(request))


def build_settings_values(request: RequestContext) -> dict[str, Any]:
    projects = [
        project
        for project in request.cluster_view.cache.list(APP_PROJECT)
        if request.is_allowed("projects", "get", _get_name(project))
    ]
    counts = {"Projects": len(projects)}
    sections = [
        {"name": name, "url": url, "glyph": glyph, "about": about, "count": counts.get(name)}
        for name, url, glyph, about in SECTIONS
    ]
    if request.is_allowed("applications", "get", ALL_APPLICATIONS):
        about = "problems, their causes, and the commands that fix them"
        sections.append({"name": "Doctor", "url": "/doctor", "glyph": "doctor", "about": about, "count": None})
    return {"title": "Settings", "section": "settings", "state": "", "sections": sections}


def _get_name(project: dict[str, Any]) -> str:
    return str(project["metadata"]["name"])


async def render_appearance_page(request: RequestContext) -> PageResponse:
    return PageResponse(
        "settings_appearance.html",
        {"title": "Appearance", "section": "settings", "state": "", "crumbs": [SETTINGS_BREADCRUMB]},
    )


ROUTES = (
    Route("GET", "/settings", SignedIn(), render_settings_page, "Settings page."),
    Route("GET", "/settings/appearance", SignedIn(), render_appearance_page, "Appearance settings page."),
)
