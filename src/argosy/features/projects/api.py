"""Argo CD API routes for projects: list, get, create, update, delete.

In: a request. Out: AppProjects in Argo CD's shapes. Never: shows a project that the caller may not see, or a secret
field of a repository or cluster; grants a permission that the caller does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from argosy.errors import PolicyError, UserError
from argosy.features.clusters import service
from argosy.features.repositories import service as repositories
from argosy.gitops.application.project_spec import read_project
from argosy.gitops.application_client.application_service import ApplicationService, utc_now
from argosy.gitops.application_client.appproject_operations import (
    TYPE_META,
    create_project,
    delete_project,
    projects_of,
)
from argosy.gitops.application_client.argocd_secrets_and_config_maps import load_config_map_data
from argosy.gitops.application_client.deep_links import render_links
from argosy.gitops.application_client.project_entry_checks import check_project
from argosy.gitops.application_client.project_event_recorder import record_project_event
from argosy.gitops.application_client.project_update_checks import (
    check_applications_stay_valid,
    list_added_clusters,
    list_added_repositories,
)
from argosy.gitops.application_client.role_token_lists import combine_role_tokens
from argosy.gitops.policy.global_projects import list_global_projects
from argosy.gitops.policy.sync_windows import WindowError, is_active
from argosy.gitops.status.application_event_manifests import EventReason
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import EVENT
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader, check_same_name
from argosy.web.api.paging import ARGO_PAGING, FIELDS, build_argo_page, select_fields
from argosy.web.caller_application_service import build_service
from argosy.web.request import ObjectNotFound, RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, ResolvedObject, Route

COPIED_METADATA_FIELDS: Final = ("labels", "annotations", "finalizers")
OPENAPI_TAG: Final = "projects"
PROJECT_SCHEMA: Final = schema.build_object_schema(
    metadata=schema.METADATA, spec=schema.OBJECT_SCHEMA, status=schema.OBJECT_SCHEMA
)
CREATE_SCHEMA: Final = schema.build_object_schema("project", project=PROJECT_SCHEMA, upsert=schema.BOOLEAN_SCHEMA)
UPDATE_SCHEMA: Final = schema.build_object_schema("project", project=PROJECT_SCHEMA)


def project_service(request: RequestContext) -> ApplicationService:
    """The caller's ApplicationService, in the control namespace, where projects are."""
    app_service = build_service(request)
    return replace(app_service, namespace=app_service.control_namespace)


async def load_project(request: RequestContext, name: str) -> dict[str, Any] | None:
    projects = await projects_of(project_service(request))
    return next((manifest for manifest in projects if manifest["metadata"]["name"] == name), None)


async def find_project(request: RequestContext) -> ResolvedObject:
    """Load the project named by `{name}` or `{project}` from the cluster."""
    name = request.path_parameters.get("project") or request.path_parameters["name"]
    if (manifest := await load_project(request, name)) is not None:
        return ResolvedObject(manifest, name)
    # argo: the permission is about the name alone, so it does not reveal which projects exist.
    return ResolvedObject(None, name, error=ObjectNotFound(f'appprojects.argoproj.io "{name}" not found'))


async def read_new_project(request: RequestContext) -> ResolvedObject | None:
    """The project in the request body, under its name."""
    manifest = _read_project_body(BodyReader(await request.read_json_object()), request)
    return ResolvedObject(manifest, manifest["metadata"]["name"], is_from_request_only=True)


def _read_project_body(body: BodyReader, request: RequestContext) -> dict[str, Any]:
    project_body = body.get_body("project")
    if project_body is None:
        raise UserError("is required; send the AppProject in it", where="project")
    metadata = project_body.get_body("metadata") or BodyReader({}, "project.metadata")
    name, namespace = metadata.get_text("name"), metadata.get_text("namespace")
    control = request.service.control_namespace
    if not name:
        raise UserError("is required; send the name of the project", where="project.metadata.name")
    if namespace not in ("", control):
        raise UserError(f"projects must be in namespace {control}; omit this field", where="project.metadata.namespace")
    spec = project_body.get_body("spec")
    copied_fields = {
        field: metadata.values[field] for field in COPIED_METADATA_FIELDS if metadata.values.get(field) is not None
    }
    return {
        **TYPE_META,
        "metadata": {"name": name, "namespace": control, **copied_fields},
        "spec": dict(spec.values) if spec else {},
    }


async def list_projects(request: RequestContext) -> JsonResponse:
    name = request.query.get_text("name")
    projects = [
        manifest
        for manifest in await projects_of(project_service(request))
        if name in ("", manifest["metadata"]["name"])
        and request.is_allowed("projects", "get", manifest["metadata"]["name"])
    ]
    return build_argo_page(request, projects)


async def get_project(request: RequestContext) -> JsonResponse:
    return select_fields(request, request.subject)


async def create_project_handler(request: RequestContext) -> JsonResponse:
    manifest, body = request.subject, BodyReader(await request.read_json_object())
    name = manifest["metadata"]["name"]
    check_project(name, manifest["spec"])
    existing = await load_project(request, name)
    if existing is not None:  # an error must not reveal a project that the caller may not see
        request.require_permission("projects", "update" if body.get_bool("upsert") else "get", name)
        if body.get_bool("upsert") and "resourceVersion" in existing["metadata"]:
            await _check_update(request, existing, manifest)
    try:
        await create_project(project_service(request), manifest, upsert=body.get_bool("upsert"))
    except UserError as error:
        if error.message.startswith("existing project spec"):
            raise UserError("existing project spec is different; use upsert flag to force update") from None
        raise
    await record_project_event(project_service(request), name, EventReason.RESOURCE_CREATED, "created project")
    return await _reload_project(request, name)


async def update_project(request: RequestContext) -> JsonResponse:
    manifest = _read_project_body(BodyReader(await request.read_json_object()), request)
    name = request.rbac_object
    check_same_name(name, manifest["metadata"]["name"])
    check_project(name, manifest["spec"])
    existing = request.subject
    await _check_update(request, existing, manifest)
    cluster = request.service.cluster
    if "resourceVersion" not in existing["metadata"]:  # the built-in default project, which is not stored yet
        await cluster.create(manifest)
    else:
        copied_fields = {
            field: manifest["metadata"][field] for field in COPIED_METADATA_FIELDS if field in manifest["metadata"]
        }
        project_body = BodyReader(await request.read_json_object()).get_body("project")
        resource_version = (
            (project_body.get_body("metadata") or BodyReader({})).get_text("resourceVersion") if project_body else ""
        )
        metadata = {
            **existing["metadata"],
            **copied_fields,
            **({"resourceVersion": resource_version} if resource_version else {}),
        }
        read_project(manifest, f"AppProject {name}")
        await cluster.replace(combine_role_tokens({**existing, "metadata": metadata, "spec": manifest["spec"]}))
    await record_project_event(project_service(request), name, EventReason.RESOURCE_UPDATED, "updated project")
    return await _reload_project(request, name)


async def _check_update(request: RequestContext, existing: Manifest, updated: Manifest) -> None:
    """argo: adding a destination or source needs the permission to update that cluster or repository."""
    old, new = existing.get("spec") or {}, updated["spec"]
    for server in list_added_clusters(old, new):
        request.require_permission("clusters", "update", server)
    for url in list_added_repositories(old, new):
        request.require_permission("repositories", "update", url)
    check_applications_stay_valid(
        existing, updated, await project_service(request).list_applications(all_namespaces=True)
    )


async def _reload_project(request: RequestContext, name: str) -> JsonResponse:
    return JsonResponse(await load_project(request, name) or {})


async def delete_project_handler(request: RequestContext) -> JsonResponse:
    try:
        await delete_project(project_service(request), request.rbac_object)
    except PolicyError as error:  # argo: not a permission error
        raise UserError(error.message, where=error.where) from None
    reason = EventReason.RESOURCE_DELETED
    await record_project_event(
        project_service(request), request.rbac_object, reason, "deleted project", deleted=request.subject
    )
    return JsonResponse({})


async def get_detailed_project(request: RequestContext) -> JsonResponse:
    """argo: the project with its scoped repositories and clusters, of which only the addresses are returned."""
    name, app_service = request.rbac_object, project_service(request)
    all_repositories = await repositories.list_declared(app_service, repositories.REPOSITORIES)
    scoped = [declared for declared in all_repositories if declared.get_stripped("project") == name]
    own_clusters = [
        declared for declared in await service.list_clusters(app_service) if declared.get_stripped("project") == name
    ]
    return JsonResponse(
        {
            "project": request.subject,
            "globalProjects": await _list_global_projects(request),
            "repositories": [
                {"repo": declared.get_stripped("url"), "type": declared.get_stripped("type") or "git"}
                for declared in scoped
            ],
            "clusters": [
                {"server": service.read_server(declared), "name": declared.get_stripped("name")}
                for declared in own_clusters
            ],
        }
    )


async def _list_global_projects(request: RequestContext) -> list[Mapping[str, Any]]:
    data = await load_config_map_data(project_service(request), "argocd-cm")
    names = list_global_projects(read_project(request.subject), data)
    projects_by_name = {
        manifest["metadata"]["name"]: manifest for manifest in await projects_of(project_service(request))
    }
    return [projects_by_name[name] for name in names if name in projects_by_name]


async def global_projects(request: RequestContext) -> JsonResponse:
    return JsonResponse({"items": await _list_global_projects(request)})


async def list_events(request: RequestContext) -> JsonResponse:
    control = request.service.control_namespace
    all_events = (await request.service.cluster.list(EVENT, namespace=control)).items
    project_events = [
        event
        for event in all_events
        if (event.get("involvedObject") or {}).get("kind") == "AppProject"
        and event["involvedObject"].get("name") == request.rbac_object
    ]
    return build_argo_page(request, project_events)


async def list_links(request: RequestContext) -> JsonResponse:
    """argo: deep links from argocd-cm."""
    text = (await load_config_map_data(project_service(request), "argocd-cm")).get("project.links", "")
    deep_links, _ = render_links(text, {"project": dict(request.subject)}, "argocd-cm: project.links")
    names = ("url", "title", "description", "iconClass")
    return JsonResponse({"items": [{name: value for name, value in zip(names, link) if value} for link in deep_links]})


async def list_active_windows(request: RequestContext) -> JsonResponse:
    """argo: the active sync windows."""
    parsed_project = read_project(request.subject, f"AppProject {request.rbac_object}")
    wires = (request.subject.get("spec") or {}).get("syncWindows") or []
    return JsonResponse(
        {
            "windows": [
                wire for wire, window in zip(wires, parsed_project.windows, strict=True) if _is_window_active(window)
            ]
        }
    )


def _is_window_active(window: Any) -> bool:
    try:
        return is_active(window, utc_now())
    except WindowError:
        return False


_PATH: Final = "/api/v1/projects"
GET_PERMISSION: Final = RequiresPermission("projects", "get", find_project)
ROUTES = (
    Route(
        "GET",
        _PATH,
        FilteredList("projects", "get"),
        list_projects,
        "List projects.",
        query=(QueryParameter("name", "Only the project with this name."), *ARGO_PAGING),
        response_schema=schema.build_object_schema(
            metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(PROJECT_SCHEMA)
        ),
        tag=OPENAPI_TAG,
        operation_id="ProjectService_List",
    ),
    Route(
        "POST",
        _PATH,
        RequiresPermission("projects", "create", read_new_project),
        create_project_handler,
        "Create a project. With `upsert`, an existing project is updated, which needs the permission to update it.",
        request_schema=CREATE_SCHEMA,
        response_schema=PROJECT_SCHEMA,
        tag=OPENAPI_TAG,
        operation_id="ProjectService_Create",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}",
        GET_PERMISSION,
        get_project,
        "Read a project.",
        query=(FIELDS,),
        response_schema=PROJECT_SCHEMA,
        tag=OPENAPI_TAG,
        operation_id="ProjectService_Get",
    ),
    Route(
        "PUT",
        f"{_PATH}/{{name}}",
        RequiresPermission("projects", "update", find_project),
        update_project,
        "Update a project. New destinations need the permission to update the cluster, new sources the repository.",
        request_schema=UPDATE_SCHEMA,
        response_schema=PROJECT_SCHEMA,
        tag=OPENAPI_TAG,
        operation_id="ProjectService_Update",
    ),
    Route(
        "DELETE",
        f"{_PATH}/{{name}}",
        RequiresPermission("projects", "delete", find_project),
        delete_project_handler,
        "Delete a project without Applications.",
        response_schema=schema.NOTHING,
        tag=OPENAPI_TAG,
        operation_id="ProjectService_Delete",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/detailed",
        GET_PERMISSION,
        get_detailed_project,
        "Get a project with its global projects, scoped repositories and scoped clusters.",
        response_schema=schema.build_object_schema(
            project=PROJECT_SCHEMA,
            globalProjects=schema.build_array_schema(PROJECT_SCHEMA),
            repositories=schema.build_array_schema(
                schema.build_object_schema(repo=schema.STRING_SCHEMA, type=schema.STRING_SCHEMA)
            ),
            clusters=schema.build_array_schema(
                schema.build_object_schema(server=schema.STRING_SCHEMA, name=schema.STRING_SCHEMA)
            ),
        ),
        tag=OPENAPI_TAG,
        operation_id="ProjectService_GetDetailedProject",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/events",
        GET_PERMISSION,
        list_events,
        "List the events of a project.",
        response_schema=schema.EVENTS,
        tag=OPENAPI_TAG,
        operation_id="ProjectService_ListEvents",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/globalprojects",
        GET_PERMISSION,
        global_projects,
        "List the global projects that a project inherits from.",
        response_schema=schema.build_object_schema(items=schema.build_array_schema(PROJECT_SCHEMA)),
        tag=OPENAPI_TAG,
        operation_id="ProjectService_GetGlobalProjects",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/links",
        GET_PERMISSION,
        list_links,
        "List the deep links of a project.",
        response_schema=schema.LINKS,
        tag=OPENAPI_TAG,
        operation_id="ProjectService_ListLinks",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/syncwindows",
        GET_PERMISSION,
        list_active_windows,
        "List the active sync windows of a project.",
        response_schema=schema.build_object_schema(windows=schema.build_array_schema(schema.OBJECT_SCHEMA)),
        tag=OPENAPI_TAG,
        operation_id="ProjectService_GetSyncWindowsState",
    ),
)
