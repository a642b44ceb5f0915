"""`/settings/projects[/{name}]`: the pages of projects.

In: a request. Out: projects that the caller may see. Never: shows a role token.
"""

from __future__ import annotations

from typing import Any

from argosy.features.projects import project_views
from argosy.gitops.application.project_spec import DEFAULT_PROJECT_MANIFEST
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.appproject_operations import DEFAULT_PROJECT, TYPE_META
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import FilteredList, RequiresPermission, ResolvedObject, Route
from argosy.web.settings_overview_page import SETTINGS_BREADCRUMB


async def render_projects_page(request: RequestContext) -> PageResponse:
    now, apps = utc_now(), _list_applications(request)
    projects = [
        project_views.build_project_view(manifest, apps, now)
        for manifest in _list_projects(request)
        if request.is_allowed("projects", "get", _read_name(manifest))
    ]
    values = {
        "title": "Projects",
        "section": "settings",
        "state": "",
        "crumbs": [SETTINGS_BREADCRUMB],
        "projects": projects,
    }
    return PageResponse("projects/projects.html", values)


async def find_project(request: RequestContext) -> ResolvedObject | None:
    """argo: the default project exists even if it is not stored."""
    name = request.path_parameters["name"]
    manifest_found = next((manifest for manifest in _list_projects(request) if _read_name(manifest) == name), None)
    return ResolvedObject(manifest_found, name) if manifest_found else None


async def render_project_page(request: RequestContext) -> PageResponse:
    view = project_views.build_project_view(request.subject, _list_applications(request), utc_now())
    crumbs = [SETTINGS_BREADCRUMB, ("Projects", "/settings/projects")]
    values = {"title": view.name, "section": "settings", "state": "", "crumbs": crumbs, "project": view}
    return PageResponse("projects/project.html", values)


def _list_projects(request: RequestContext) -> list[Manifest]:
    projects: list[Manifest] = request.cluster_view.cache.list(APP_PROJECT, namespace=request.service.control_namespace)
    if not any(_read_name(manifest) == DEFAULT_PROJECT for manifest in projects):
        projects = [*projects, {**TYPE_META, **DEFAULT_PROJECT_MANIFEST}]
    return sorted(projects, key=_read_name)


def _list_applications(request: RequestContext) -> list[Manifest]:
    applications: list[Manifest] = request.cluster_view.cache.list(GroupKind(*APPLICATION))
    return applications


def _read_name(manifest: Any) -> str:
    return str(manifest["metadata"]["name"])


ROUTES = (
    Route("GET", "/settings/projects", FilteredList("projects", "get"), render_projects_page, "Projects, as a page."),
    Route(
        "GET",
        "/settings/projects/{name}",
        RequiresPermission("projects", "get", find_project),
        render_project_page,
        "A project, as a page.",
    ),
)
