"""Argo CD API routes for the content of a repository: refs, application folders, source parameters.

In: a request. Out: responses in Argo CD's shapes. Never: clones for a caller who could not deploy from the repository.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.repositories import service
from argosy.features.repositories.app_details import describe_source, list_app_folders
from argosy.features.repositories.connection_test import fetch_refs
from argosy.features.repositories.service import REPOSITORIES
from argosy.gitops.application.repository_url_parser import is_same_repository
from argosy.gitops.application.step_results import Checkout
from argosy.gitops.reconciler.desired_state_builder import add_permitted_submodules
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.not_implemented_response import build_not_implemented
from argosy.web.caller_application_service import build_service
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.requested_application_lookup import get_application_rbac_name, read_project_name
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, ResolvedObject, Route

OPENAPI_TAG: Final = "repositories"
MAX_INDEX_AGE_SECONDS: Final = 30.0
NO_OCI_MESSAGE: Final = "argosy reads charts and manifests from Git and Helm repositories, not from OCI registries"


async def find_readable_repository(request: RequestContext) -> ResolvedObject | None:
    """Find a declared repository, or one that is a source of an Application that the caller may see."""
    url, project = request.path_parameters["repo"], request.query.get_text("appProject")
    declared = await service.find_declared(build_service(request), REPOSITORIES, url, project)
    if declared is not None:
        return ResolvedObject(
            {"url": declared.get_stripped("url"), "project": declared.get_stripped("project")},
            service.rbac_name(declared),
        )
    # With appProject, the project's credentials are used: only callers who may see its repositories may do that.
    rbac_name = f"{project}/{url}" if project else url
    if _is_used_by_visible_app(request, url) or request.is_allowed("repositories", "create", rbac_name):
        return ResolvedObject({"url": url, "project": project}, rbac_name)
    return None


def _is_used_by_visible_app(request: RequestContext, url: str) -> bool:
    for manifest in request.cluster_view.cache.list(GroupKind(*APPLICATION)):
        spec = as_mapping(manifest.get("spec"))
        sources = (as_mapping(spec.get("source")), *as_mappings(spec.get("sources")))
        if any(is_same_repository(str(source.get("repoURL") or ""), url) for source in sources):
            metadata = manifest["metadata"]
            rbac_name = get_application_rbac_name(
                request, read_project_name(manifest), metadata["namespace"], metadata["name"]
            )
            if request.is_allowed("applications", "get", rbac_name):
                return True
    return False


async def list_refs(request: RequestContext) -> JsonResponse:
    remote_refs = await fetch_refs(
        request.subject["url"], request.subject["project"], request.cluster_view.rules.repositories
    )
    return JsonResponse({"branches": sorted(remote_refs.branches), "tags": sorted(remote_refs.tags)})


async def list_apps(request: RequestContext) -> JsonResponse:
    _require_deploy_permission(request, request.query.get_text("appProject"), request.query.get_text("appName"))
    checkout = await _check_out(request, request.query.get_text("revision"), request.query.get_text("appProject"))
    folders = await asyncio.to_thread(list_app_folders, checkout.tree)
    return JsonResponse({"items": [{"path": folder.path, "type": folder.tool} for folder in folders]})


async def get_app_details(request: RequestContext) -> JsonResponse:
    body = await request.read_json_object()
    source = body.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("targetRevision") or "", str):
        raise UserError("is missing or not a source object", where="source")
    if not is_same_repository(str(source.get("repoURL") or ""), request.path_parameters["repo"]):
        raise UserError("repoURL differs from the repository in the path; send the same", where="source")
    _require_deploy_permission(request, _read_text(body, "appProject"), _read_text(body, "appName"))
    ref, chart = source.get("targetRevision") or "", _read_text(source, "chart")
    checkout = await _check_out(request, ref, _read_text(body, "appProject"), chart)
    return JsonResponse(
        await asyncio.to_thread(describe_source, checkout.tree, source, request.cluster_view.rules.build)
    )


def _read_text(body: dict[str, Any], name: str) -> str:
    value = body.get(name) or ""
    if not isinstance(value, str):
        raise UserError("must be a string", where=name)
    return value


def _require_deploy_permission(request: RequestContext, project: str, name: str) -> None:
    """argo: raise Refused unless the caller may create or update such an Application."""
    rbac_name = f"{project or 'default'}/{name or '*'}"
    if not (
        request.is_allowed("applications", "create", rbac_name)
        or request.is_allowed("applications", "update", rbac_name)
    ):
        raise NotFoundOrForbidden
    owner = request.subject["project"]
    if owner and owner != (project or "default"):
        raise NotFoundOrForbidden


async def _check_out(request: RequestContext, ref: str, app_project: str, chart: str = "") -> Checkout:
    settings: ReconcilerSettings = request.cluster_view.rules
    repositories = settings.repositories
    url, project = request.subject["url"], request.subject["project"]
    if chart:
        return await repositories.checkout_chart(url, chart, ref, project=project, max_age=MAX_INDEX_AGE_SECONDS)
    checkout = await repositories.checkout(url, ref, project=project, max_age=30.0)
    permitted = settings.projects.get(app_project or "default")
    return checkout if permitted is None else await add_permitted_submodules(checkout, url, permitted, settings)


async def list_helm_charts(request: RequestContext) -> JsonResponse:
    """argo: the charts of a Helm repository with their versions."""
    repository = request.cluster_view.rules.repositories.chart_repository(
        request.subject["url"], project=request.subject["project"]
    )
    charts = await repository.list_charts(max_age=MAX_INDEX_AGE_SECONDS)
    return JsonResponse({"items": [{"name": name, "versions": charts[name]} for name in sorted(charts)]})


async def reject_oci_tags(request: RequestContext) -> JsonResponse:
    return build_not_implemented(NO_OCI_MESSAGE, "list the charts in Git: /api/v1/repositories/{repo}/apps")


_PATH: Final = "/api/v1/repositories/{repo}"
READ_ACCESS: Final = RequiresPermission("repositories", "get", find_readable_repository)
APP_PARAMETERS: Final = (
    QueryParameter("revision", "Branch, tag or commit (default: head of the default branch)."),
    QueryParameter("appName", "Name of the Application."),
    QueryParameter("appProject", "Project of the Application."),
)
ROUTES = (
    Route(
        "GET",
        f"{_PATH}/refs",
        READ_ACCESS,
        list_refs,
        "List branches and tags of a repository, from its host.",
        query=(QueryParameter("appProject", "The project that the repository is scoped to."),),
        response_schema=schema.build_object_schema(
            branches=schema.build_array_schema(schema.STRING_SCHEMA),
            tags=schema.build_array_schema(schema.STRING_SCHEMA),
        ),
        tag=OPENAPI_TAG,
        operation_id="RepositoryService_ListRefs",
    ),
    Route(
        "GET",
        f"{_PATH}/apps",
        READ_ACCESS,
        list_apps,
        "List Kustomize and Helm folders. Needs the permission to create or update such an Application.",
        query=APP_PARAMETERS,
        response_schema=schema.build_object_schema(
            items=schema.build_array_schema(
                schema.build_object_schema(path=schema.STRING_SCHEMA, type=schema.STRING_SCHEMA)
            )
        ),
        tag=OPENAPI_TAG,
        operation_id="RepositoryService_ListApps",
    ),
    Route(
        "POST",
        f"{_PATH}/appdetails",
        READ_ACCESS,
        get_app_details,
        "Get the parameters of a source. Needs the permission to create or update such an Application.",
        query=(QueryParameter("appProject", "The project that the repository is scoped to."),),
        request_schema=schema.build_object_schema(
            "source", source=schema.SOURCE, appName=schema.STRING_SCHEMA, appProject=schema.STRING_SCHEMA
        ),
        response_schema=schema.build_object_schema(
            "type",
            type=schema.STRING_SCHEMA,
            helm=schema.OBJECT_SCHEMA,
            kustomize=schema.OBJECT_SCHEMA,
            directory=schema.OBJECT_SCHEMA,
        ),
        tag=OPENAPI_TAG,
        operation_id="RepositoryService_GetAppDetails",
    ),
    Route(
        "GET",
        f"{_PATH}/helmcharts",
        READ_ACCESS,
        list_helm_charts,
        "List the charts of a Helm repository, with their versions.",
        query=(QueryParameter("appProject", "The project that the repository is scoped to."),),
        response_schema=schema.build_object_schema(
            items=schema.build_array_schema(
                schema.build_object_schema(
                    name=schema.STRING_SCHEMA, versions=schema.build_array_schema(schema.STRING_SCHEMA)
                )
            )
        ),
        tag=OPENAPI_TAG,
        operation_id="RepositoryService_GetHelmCharts",
    ),
    Route(
        "GET",
        f"{_PATH}/oci-tags",
        READ_ACCESS,
        reject_oci_tags,
        "Not implemented: argosy reads no OCI registries.",
        tag=OPENAPI_TAG,
        operation_id="RepositoryService_ListOCITags",
    ),
)
