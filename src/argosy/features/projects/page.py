"""`/settings/projects[/{name}]`: the pages of projects.

In: a request. Out: projects that the caller may see. Never: shows a role token.
"""

from __future__ import annotations

from typing import Any

from argosy.features.projects import summary
from argosy.gitops.application import APPLICATION
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.projects import DEFAULT, HEAD
from argosy.gitops.reconciler.settings_watch import EVERYTHING_ALLOWED
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.web.object_lookup import PROJECT
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Filtered, Found, May, Route
from argosy.web.settings_page import CRUMB


async def page(asked: Asked) -> Page:
    now, apps = clock(), _apps(asked)
    found = [summary.view(each, apps, now) for each in _all(asked) if asked.may("projects", "get", _name(each))]
    values = {"title": "Projects", "section": "settings", "state": "", "crumbs": [CRUMB], "projects": found}
    return Page("projects/projects.html", values)


async def project(asked: Asked) -> Found | None:
    """argo: the default project exists even if it is not stored."""
    name = asked.values["name"]
    found = next((each for each in _all(asked) if _name(each) == name), None)
    return Found(found, name) if found else None


async def one(asked: Asked) -> Page:
    view = summary.view(asked.subject, _apps(asked), clock())
    crumbs = [CRUMB, ("Projects", "/settings/projects")]
    values = {"title": view.name, "section": "settings", "state": "", "crumbs": crumbs, "project": view}
    return Page("projects/project.html", values)


def _all(asked: Asked) -> list[Manifest]:
    found: list[Manifest] = asked.site.lookout.cache.list(PROJECT, namespace=asked.site.desk.control)
    if not any(_name(each) == DEFAULT for each in found):
        found = [*found, {**HEAD, **EVERYTHING_ALLOWED}]
    return sorted(found, key=_name)


def _apps(asked: Asked) -> list[Manifest]:
    found: list[Manifest] = asked.site.lookout.cache.list(GroupKind(*APPLICATION))
    return found


def _name(manifest: Any) -> str:
    return str(manifest["metadata"]["name"])


ROUTES = (
    Route("GET", "/settings/projects", Filtered("projects", "get"), page, "Projects, as a page."),
    Route("GET", "/settings/projects/{name}", May("projects", "get", project), one, "A project, as a page."),
)
