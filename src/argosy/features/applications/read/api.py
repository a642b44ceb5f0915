"""API to list and get Applications.

In: a request. Out: Application and ApplicationList in Argo CD's format. Never: one that the caller may not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from argosy.errors import TransientError
from argosy.features.applications.read.health_in_status import with_health
from argosy.gitops.application import APPLICATION
from argosy.gitops.application.repository_url import is_same_repository
from argosy.gitops.application_client.small_changes import refresh
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.controller.wait import TooLate
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema.selectors import labels as read_labels
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, FIELDS, chosen, part
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.middleware.application_masks import masks_of
from argosy.web.object_lookup import application, application_name, is_at_home, project_of
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, May, Parameter, Route

SECONDS: Final = 45.0  # the middleware times out after a minute
PLACE: Final = (
    Parameter("appNamespace", "The namespace of the Application, if it is not that of the installation."),
    Parameter("project", "The project of the Application."),
)


async def listed(asked: Asked) -> Json:
    found = sorted(_visible(asked), key=lambda each: (each["metadata"]["name"], each["metadata"]["namespace"]))
    return part(asked, found, resourceVersion=_version(found))


def _visible(asked: Asked) -> Iterator[Manifest]:
    decide = asked.deciding
    for manifest in _chosen(asked):
        metadata = manifest["metadata"]
        thing = application_name(asked, project_of(manifest), metadata["namespace"], metadata["name"])
        if decide("applications", "get", thing):
            yield manifest


def _chosen(asked: Asked) -> Iterator[Manifest]:
    query = asked.query
    projects = {*query.all("projects"), *query.all("project")} - {""}
    selector = read_labels(query.text("selector")) if query.text("selector") else None
    name, repo = query.text("name"), query.text("repo")
    for manifest in _all(asked, query.text("appNamespace")):
        if name and manifest["metadata"]["name"] != name:
            continue
        if projects and project_of(manifest) not in projects:
            continue
        if selector is not None and not selector.matches(manifest["metadata"].get("labels")):
            continue
        if not repo or any(is_same_repository(url, repo) for url in _repositories(manifest)):
            yield manifest


def _all(asked: Asked, namespace: str = "") -> Iterable[Manifest]:
    found: list[Manifest] = asked.site.lookout.cache.list(GroupKind(*APPLICATION), namespace=namespace)
    return [masks_of(asked).application(each) for each in found if is_at_home(asked, each)]


def _repositories(manifest: Manifest) -> set[str]:
    spec = mapping(manifest.get("spec"))
    return {str(each.get("repoURL") or "") for each in (mapping(spec.get("source")), *mappings(spec.get("sources")))}


def _version(found: Iterable[Manifest]) -> str:
    """Return the newest resourceVersion of these objects: a watch from there misses no change of them."""
    versions = (str(each["metadata"].get("resourceVersion") or "") for each in found)
    return str(max((int(each) for each in versions if each.isdecimal()), default=0))


async def got(asked: Asked) -> Json:
    word = asked.query.text("refresh")
    app = asked.subject
    if word:  # argo: any value except hard means a normal refresh
        try:
            asked.noted(asked.thing)  # a refresh writes an annotation
            with asked.entry.turnstile.waiting(asked.caller.name):
                app = await refresh(desk_of(asked), app, is_hard=word == "hard", seconds=SECONDS)
        except TooLate as error:
            raise TransientError(str(error)) from error
    return chosen(asked, await with_health(reader_of(asked), app))


ROUTES = (
    Route(
        "GET", "/api/v1/applications", Filtered("applications", "get"), listed, "List Applications.",
        query=(
            Parameter("name", "Only the Application with this name."),
            Parameter("refresh", "Accepted and ignored."),
            Parameter("projects", "Only Applications of these projects.", "array"),
            Parameter("project", "Only Applications of these projects.", "array"),
            Parameter("resourceVersion", "Accepted and ignored."),
            Parameter("selector", "Only Applications that match this label selector."),
            Parameter("repo", "Only Applications with this repository."),
            Parameter("appNamespace", "Only Applications in this namespace."),
            *ARGO_PAGING,
        ),
        gives=schema.APPLICATIONS, tag="applications", operation="ApplicationService_List",
    ),
    Route(
        "GET", "/api/v1/applications/{name}", May("applications", "get", application), got, "Get an Application.",
        query=(
            Parameter("refresh", "Refresh the Application first; hard: also render its manifests again."),
            Parameter("resourceVersion", "Accepted and ignored."),
            *PLACE, FIELDS,
        ),
        gives=schema.APPLICATION, tag="applications", operation="ApplicationService_Get",
    ),
)  # fmt: skip
