"""Argo CD API routes for the content of a repository: refs, application folders, source parameters.

In: a request. Out: responses in Argo CD's shapes. Never: clones for a caller who could not deploy from the repository.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.repositories import service
from argosy.features.repositories.connection_test import refs_of
from argosy.features.repositories.content import apps_in, details
from argosy.features.repositories.service import REPOSITORIES
from argosy.gitops.application import APPLICATION
from argosy.gitops.application.repository_url import is_same_repository
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import GroupKind
from argosy.web.api import json_schemas as schema
from argosy.web.api.not_implemented import not_built
from argosy.web.caller_clients import desk_of
from argosy.web.object_lookup import application_name, project_of
from argosy.web.request import Asked, Refused
from argosy.web.responses import Json
from argosy.web.route import Found, May, Parameter, Route

TAG: Final = "repositories"
ONLY_GIT: Final = "argosy reads charts and manifests only from Git, not from Helm repositories or OCI registries"


async def readable(asked: Asked) -> Found | None:
    """Find a declared repository, or one that is a source of an Application that the caller may see."""
    url, project = asked.values["repo"], asked.query.text("appProject")
    found = await service.find(desk_of(asked), REPOSITORIES, url, project)
    if found is not None:
        return Found({"url": found.text("url"), "project": found.text("project")}, service.thing_of(found))
    # With appProject, the project's credentials are used: only callers who may see its repositories may do that.
    thing = f"{project}/{url}" if project else url
    if _is_used(asked, url) or asked.may("repositories", "create", thing):
        return Found({"url": url, "project": project}, thing)
    return None


def _is_used(asked: Asked, url: str) -> bool:
    for manifest in asked.site.lookout.cache.list(GroupKind(*APPLICATION)):
        spec = mapping(manifest.get("spec"))
        sources = (mapping(spec.get("source")), *mappings(spec.get("sources")))
        if any(is_same_repository(str(each.get("repoURL") or ""), url) for each in sources):
            metadata = manifest["metadata"]
            thing = application_name(asked, project_of(manifest), metadata["namespace"], metadata["name"])
            if asked.may("applications", "get", thing):
                return True
    return False


async def refs(asked: Asked) -> Json:
    found = await refs_of(asked.subject["url"], asked.subject["project"], asked.site.lookout.rules.repositories)
    return Json({"branches": sorted(found.branches), "tags": sorted(found.tags)})


async def apps(asked: Asked) -> Json:
    _may_deliver(asked, asked.query.text("appProject"), asked.query.text("appName"))
    checkout = await _checkout(asked, asked.query.text("revision"))
    found = await asyncio.to_thread(apps_in, checkout.tree)
    return Json({"items": [{"path": each.path, "type": each.tool} for each in found]})


async def app_details(asked: Asked) -> Json:
    sent = await asked.mapping()
    source = sent.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("targetRevision") or "", str):
        raise UserError("is missing or not a source object", where="source")
    if not is_same_repository(str(source.get("repoURL") or ""), asked.values["repo"]):
        raise UserError("repoURL differs from the repository in the path; send the same", where="source")
    _may_deliver(asked, _text(sent, "appProject"), _text(sent, "appName"))
    checkout = await _checkout(asked, source.get("targetRevision") or "")
    return Json(await asyncio.to_thread(details, checkout.tree, source, asked.site.lookout.rules.build))


def _text(sent: dict[str, Any], name: str) -> str:
    found = sent.get(name) or ""
    if not isinstance(found, str):
        raise UserError("must be a string", where=name)
    return found


def _may_deliver(asked: Asked, project: str, name: str) -> None:
    """argo: raise Refused unless the caller may create or update such an Application."""
    thing = f"{project or 'default'}/{name or '*'}"
    if not (asked.may("applications", "create", thing) or asked.may("applications", "update", thing)):
        raise Refused
    owner = asked.subject["project"]
    if owner and owner != (project or "default"):
        raise Refused


async def _checkout(asked: Asked, ref: str) -> Checkout:
    rules = asked.site.lookout.rules
    found: Checkout = await rules.repositories.checkout(
        asked.subject["url"], ref, project=asked.subject["project"], max_age=30.0
    )
    return found


async def charts(asked: Asked) -> Json:
    return not_built(ONLY_GIT, "list the charts in Git: /api/v1/repositories/{repo}/apps")


_PATH: Final = "/api/v1/repositories/{repo}"
READ: Final = May("repositories", "get", readable)
OF_APP: Final = (
    Parameter("revision", "Branch, tag or commit (default: head of the default branch)."),
    Parameter("appName", "Name of the Application."),
    Parameter("appProject", "Project of the Application."),
)
ROUTES = (
    Route(
        "GET", f"{_PATH}/refs", READ, refs, "List branches and tags of a repository, from its host.",
        query=(Parameter("appProject", "The project that the repository is scoped to."),),
        gives=schema.fields(branches=schema.many(schema.TEXT), tags=schema.many(schema.TEXT)),
        tag=TAG, operation="RepositoryService_ListRefs",
    ),
    Route(
        "GET", f"{_PATH}/apps", READ, apps,
        "List Kustomize and Helm folders. Needs the permission to create or update such an Application.",
        query=OF_APP, gives=schema.fields(items=schema.many(schema.fields(path=schema.TEXT, type=schema.TEXT))),
        tag=TAG, operation="RepositoryService_ListApps",
    ),
    Route(
        "POST", f"{_PATH}/appdetails", READ, app_details,
        "Get the parameters of a source. Needs the permission to create or update such an Application.",
        query=(Parameter("appProject", "The project that the repository is scoped to."),),
        takes=schema.fields("source", source=schema.SOURCE, appName=schema.TEXT, appProject=schema.TEXT),
        gives=schema.fields("type", type=schema.TEXT, helm=schema.ANY, kustomize=schema.ANY, directory=schema.ANY),
        tag=TAG, operation="RepositoryService_GetAppDetails",
    ),
    Route(
        "GET", f"{_PATH}/helmcharts", READ, charts, "Not implemented: argosy reads charts from Git.",
        tag=TAG, operation="RepositoryService_GetHelmCharts",
    ),
    Route(
        "GET", f"{_PATH}/oci-tags", READ, charts, "Not implemented: argosy reads charts from Git.",
        tag=TAG, operation="RepositoryService_ListOCITags",
    ),
)  # fmt: skip
