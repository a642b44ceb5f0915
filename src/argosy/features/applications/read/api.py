"""API to list and get Applications.

In: a request. Out: Application and ApplicationList in Argo CD's format. Never: one that the caller may not see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from argosy.errors import TransientError
from argosy.features.applications.read.status_health_enrichment import add_health
from argosy.gitops.application.repository_url_parser import is_same_repository
from argosy.gitops.application_client.application_actions import refresh_and_wait
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.controller.object_condition_wait import WaitTimeout
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.selectors import parse_label_selector as read_labels
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, FIELDS, build_argo_page, select_fields
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.request import RequestContext
from argosy.web.request_limits import ConcurrencyLimits
from argosy.web.requested_application_lookup import (
    get_application_rbac_name,
    is_in_allowed_namespace,
    read_project_name,
    resolve_application,
)
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, Route

REFRESH_TIMEOUT_SECONDS: Final = 45.0  # the middleware times out after a minute
APPLICATION_PARAMETERS: Final = (
    QueryParameter("appNamespace", "The namespace of the Application, if it is not that of the installation."),
    QueryParameter("project", "The project of the Application."),
)


async def list_applications(request: RequestContext) -> JsonResponse:
    manifests = sorted(
        _list_visible(request), key=lambda manifest: (manifest["metadata"]["name"], manifest["metadata"]["namespace"])
    )
    return build_argo_page(request, manifests, resourceVersion=_newest_resource_version(manifests))


def _list_visible(request: RequestContext) -> Iterator[Manifest]:
    decide = request.permission_check
    for manifest in _list_matching(request):
        metadata = manifest["metadata"]
        thing = get_application_rbac_name(request, read_project_name(manifest), metadata["namespace"], metadata["name"])
        if decide("applications", "get", thing):
            yield manifest


def _list_matching(request: RequestContext) -> Iterator[Manifest]:
    query = request.query
    projects = {*query.get_all("projects"), *query.get_all("project")} - {""}
    selector = read_labels(query.get_text("selector")) if query.get_text("selector") else None
    name, repo = query.get_text("name"), query.get_text("repo")
    for manifest in _list_all(request, query.get_text("appNamespace")):
        if name and manifest["metadata"]["name"] != name:
            continue
        if projects and read_project_name(manifest) not in projects:
            continue
        if selector is not None and not selector.matches(manifest["metadata"].get("labels")):
            continue
        if not repo or any(is_same_repository(url, repo) for url in _list_repositories(manifest)):
            yield manifest


def _list_all(request: RequestContext, namespace: str = "") -> Iterable[Manifest]:
    manifests: list[Manifest] = request.cluster_view.cache.list(GroupKind(*APPLICATION), namespace=namespace)
    return [
        request.masks.mask_application(manifest) for manifest in manifests if is_in_allowed_namespace(request, manifest)
    ]


def _list_repositories(manifest: Manifest) -> set[str]:
    spec = as_mapping(manifest.get("spec"))
    return {
        str(source.get("repoURL") or "")
        for source in (as_mapping(spec.get("source")), *as_mappings(spec.get("sources")))
    }


def _newest_resource_version(manifests: Iterable[Manifest]) -> str:
    """Return the newest resourceVersion of these objects: a watch from there misses no change of them."""
    versions = (str(item["metadata"].get("resourceVersion") or "") for item in manifests)
    return str(max((int(item) for item in versions if item.isdecimal()), default=0))


async def get_application(limits: ConcurrencyLimits, request: RequestContext) -> JsonResponse:
    refresh_type = request.query.get_text("refresh")
    app = request.subject
    if refresh_type:  # argo: any value except hard means a normal refresh
        try:
            request.add_audit_entry(request.rbac_object)  # a refresh writes an annotation
            with limits.limit_waiting(request.caller.name):
                app = await refresh_and_wait(
                    build_service(request), app, is_hard=refresh_type == "hard", timeout_seconds=REFRESH_TIMEOUT_SECONDS
                )
        except WaitTimeout as error:
            raise TransientError(str(error)) from error
    return select_fields(request, await add_health(build_reader(request), app))


def build_routes(limits: ConcurrencyLimits) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/api/v1/applications",
            FilteredList("applications", "get"),
            list_applications,
            "List Applications.",
            query=(
                QueryParameter("name", "Only the Application with this name."),
                QueryParameter("refresh", "Accepted and ignored."),
                QueryParameter("projects", "Only Applications of these projects.", "array"),
                QueryParameter("project", "Only Applications of these projects.", "array"),
                QueryParameter("resourceVersion", "Accepted and ignored."),
                QueryParameter("selector", "Only Applications that match this label selector."),
                QueryParameter("repo", "Only Applications with this repository."),
                QueryParameter("appNamespace", "Only Applications in this namespace."),
                *ARGO_PAGING,
            ),
            response_schema=schema.APPLICATIONS,
            tag="applications",
            operation_id="ApplicationService_List",
        ),
        Route(
            "GET",
            "/api/v1/applications/{name}",
            RequiresPermission("applications", "get", resolve_application),
            partial(get_application, limits),
            "Get an Application.",
            query=(
                QueryParameter("refresh", "Refresh the Application first; hard: also render its manifests again."),
                QueryParameter("resourceVersion", "Accepted and ignored."),
                *APPLICATION_PARAMETERS,
                FIELDS,
            ),
            response_schema=schema.APPLICATION,
            tag="applications",
            operation_id="ApplicationService_Get",
        ),
    )
