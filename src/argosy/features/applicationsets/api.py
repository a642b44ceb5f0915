"""API to list, get, create and delete ApplicationSets; generators are not run here.

In: a request. Out: ApplicationSets in Argo CD's format. Never: one that the caller may not see; creates Applications.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import ClusterError, Conflict, UserError
from argosy.features.applications.streams.api import get_project
from argosy.kube.objects import Manifest
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.selectors import parse_label_selector as read_labels
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION_SET, ARGOPROJ_API_VERSION, EVENT
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader
from argosy.web.api.not_implemented_response import build_not_implemented
from argosy.web.api.paging import ARGO_PAGING, FIELDS, build_argo_page, select_fields
from argosy.web.request import ObjectNotFound, RequestContext
from argosy.web.requested_application_lookup import get_application_rbac_name, is_in_allowed_namespace
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, ResolvedObject, Route

TAG: Final = "applicationsets"
APPLICATION_SET_SCHEMA: Final = schema.build_object_schema(
    metadata=schema.METADATA, spec=schema.OBJECT_SCHEMA, status=schema.OBJECT_SCHEMA
)
WRITABLE_METADATA: Final = ("labels", "annotations", "finalizers")
MAX_ATTEMPTS: Final = 8  # write conflicts with a controller


def _rbac_name(request: RequestContext, manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return get_application_rbac_name(request, get_project(manifest), str(metadata["namespace"]), str(metadata["name"]))


async def find_application_set(request: RequestContext) -> ResolvedObject | None:
    namespace = request.query.get_text("appsetNamespace") or request.service.control_namespace
    try:
        manifest = await request.service.cluster.get(
            ResourceKey(*APPLICATION_SET, namespace, request.path_parameters["name"])
        )
    except ClusterError as error:
        if error.code in (400, 404, 422):
            return None
        raise
    if manifest is None and namespace == request.service.control_namespace and _may_create_somewhere(request):
        # argo: the CLI creates one only after NotFound. Who may create one can learn its name anyway.
        raise ObjectNotFound(f'applicationsets.argoproj.io "{request.path_parameters["name"]}" not found')
    return (
        ResolvedObject(manifest, _rbac_name(request, manifest))
        if manifest and _is_namespace_permitted(request, manifest)
        else None
    )


def _may_create_somewhere(request: RequestContext) -> bool:
    """True if the caller may create an ApplicationSet of this name in some project."""
    name, projects = request.path_parameters["name"], request.cluster_view.cache.list(APP_PROJECT)
    namespace = request.service.control_namespace
    rbac_names = (
        get_application_rbac_name(request, str(project["metadata"]["name"]), namespace, name) for project in projects
    )
    return any(request.is_allowed("applicationsets", "create", rbac_name) for rbac_name in rbac_names)


def _is_namespace_permitted(request: RequestContext, manifest: Manifest) -> bool:
    """argo: A project lists its permitted source namespaces."""
    return is_in_allowed_namespace(
        request, {"metadata": manifest["metadata"], "spec": {"project": get_project(manifest)}}
    )


async def read_application_set_to_generate(request: RequestContext) -> ResolvedObject | None:
    body = BodyReader(await request.read_json_object())
    return _read_application_set(request, body.get_body("applicationSet") or body)


async def read_new_application_set(request: RequestContext) -> ResolvedObject | None:
    return _read_application_set(request, BodyReader(await request.read_json_object()))


def _read_application_set(request: RequestContext, body: BodyReader) -> ResolvedObject:
    metadata = body.get_body("metadata") or BodyReader({}, "metadata")
    spec = body.get_body("spec")
    name, control_namespace = metadata.get_text("name"), request.service.control_namespace
    if not name or spec is None:
        raise UserError("missing metadata.name or spec; send a complete ApplicationSet", where="body")
    if metadata.get_text("namespace") not in ("", control_namespace):
        raise UserError(
            f"ApplicationSets must be in namespace {control_namespace}; remove the field", where="metadata.namespace"
        )
    metadata_fields = {
        field_name: metadata.values[field_name] for field_name in WRITABLE_METADATA if metadata.values.get(field_name)
    }
    manifest = {
        "apiVersion": ARGOPROJ_API_VERSION,
        "kind": APPLICATION_SET.kind,
        "metadata": {"name": name, "namespace": control_namespace, **metadata_fields},
        "spec": dict(spec.values),
    }
    return ResolvedObject(manifest, _rbac_name(request, manifest))


async def list_application_sets(request: RequestContext) -> JsonResponse:
    query = request.query
    projects, selector = {*query.get_all("projects")} - {""}, read_labels(query.get_text("selector"))
    try:
        manifests = (
            await request.service.cluster.list(APPLICATION_SET, namespace=query.get_text("appsetNamespace"))
        ).items
    except ClusterError as error:
        if error.code != 404:  # the cluster does not have the CRD
            raise
        manifests = []
    visible = [
        manifest
        for manifest in manifests
        if (not projects or get_project(manifest) in projects)
        and selector.matches(manifest["metadata"].get("labels"))
        and _is_namespace_permitted(request, manifest)
        and request.is_allowed("applicationsets", "get", _rbac_name(request, manifest))
    ]
    return build_argo_page(request, sorted(visible, key=lambda manifest: str(manifest["metadata"]["name"])))


async def get_application_set(request: RequestContext) -> JsonResponse:
    return select_fields(request, request.subject)


def _merge_maps(current: Any, sent: Any) -> Any:
    """argo: Merge labels and annotations; replace finalizers."""
    return {**current, **sent} if isinstance(current, dict) and isinstance(sent, dict) else sent


async def create_application_set(request: RequestContext) -> JsonResponse:
    manifest, cluster = request.subject, request.service.cluster
    if request.query.get_bool("dryRun"):
        return JsonResponse(await cluster.create(manifest, dry_run=True))
    for _ in range(MAX_ATTEMPTS):
        try:
            return JsonResponse(await _create_or_update(request, manifest))
        except Conflict:  # a controller may have written conditions
            continue
    raise UserError(f"gave up after {MAX_ATTEMPTS} write conflicts; try again")


async def _create_or_update(request: RequestContext, manifest: Manifest) -> Manifest:
    """Raise Conflict if it was changed or created concurrently."""
    cluster = request.service.cluster
    key = ResourceKey(*APPLICATION_SET, manifest["metadata"]["namespace"], manifest["metadata"]["name"])
    existing = await cluster.get(key)
    if existing is None:
        return await cluster.create(manifest)
    request.require_permission("applicationsets", "get", _rbac_name(request, existing))
    metadata_fields = {name: manifest["metadata"][name] for name in WRITABLE_METADATA if manifest["metadata"].get(name)}
    metadata = {
        **existing["metadata"],
        **{name: _merge_maps(existing["metadata"].get(name), metadata_fields[name]) for name in metadata_fields},
    }
    if is_equal_json(existing.get("spec"), manifest["spec"]) and metadata == existing["metadata"]:
        return existing
    if not request.query.get_bool("upsert"):
        raise UserError("existing ApplicationSet spec is different; use upsert flag to force update")
    for version in (existing, manifest):
        request.require_permission("applicationsets", "update", _rbac_name(request, version))
    return await cluster.replace({**existing, "metadata": metadata, "spec": manifest["spec"]})


async def delete_application_set(request: RequestContext) -> JsonResponse:
    metadata = request.subject["metadata"]
    key = ResourceKey(*APPLICATION_SET, metadata["namespace"], metadata["name"])
    await request.service.cluster.delete(key, uid=metadata.get("uid"))
    return JsonResponse({})


async def refuse_generate(request: RequestContext) -> JsonResponse:
    return build_not_implemented("generating ApplicationSets is not supported", "create the Applications directly")


async def get_resource_tree(request: RequestContext) -> JsonResponse:
    """argo: The Applications that it owns."""
    uid = str(request.subject["metadata"].get("uid") or "")
    owned = request.cluster_view.cache.list_owned(uid) if uid else []
    return JsonResponse({"nodes": [_node_to_wire(child) for child in owned if _is_application_visible(request, child)]})


def _is_application_visible(request: RequestContext, manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    thing = get_application_rbac_name(request, get_project(manifest), str(metadata["namespace"]), str(metadata["name"]))
    return manifest.get("kind") == "Application" and request.is_allowed("applications", "get", thing)


def _node_to_wire(manifest: Manifest) -> dict[str, Any]:
    metadata = manifest["metadata"]
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    return {
        "group": group,
        "version": version,
        "kind": manifest["kind"],
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
    }


async def list_events(request: RequestContext) -> JsonResponse:
    metadata = request.subject["metadata"]
    all_events = (await request.service.cluster.list(EVENT, namespace=str(metadata["namespace"]))).items
    own_events = [
        event for event in all_events if (event.get("involvedObject") or {}).get("uid") == metadata.get("uid")
    ]
    return build_argo_page(request, own_events)


_PATH: Final = "/api/v1/applicationsets"
NAMESPACE_PARAMETER: Final = QueryParameter("appsetNamespace", "Its namespace, if it is not that of the installation.")
READ_PERMISSION: Final = RequiresPermission("applicationsets", "get", find_application_set)
ROUTES = (
    Route(
        "GET",
        _PATH,
        FilteredList("applicationsets", "get"),
        list_application_sets,
        "List ApplicationSets.",
        query=(
            QueryParameter("projects", "Only ApplicationSets of these projects.", "array"),
            QueryParameter("selector", "Only ApplicationSets that match this label selector."),
            NAMESPACE_PARAMETER,
            *ARGO_PAGING,
        ),
        response_schema=schema.build_object_schema(
            metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(APPLICATION_SET_SCHEMA)
        ),
        tag=TAG,
        operation_id="ApplicationSetService_List",
    ),
    Route(
        "POST",
        _PATH,
        RequiresPermission("applicationsets", "create", read_new_application_set),
        create_application_set,
        "Create an ApplicationSet. With `upsert`, update an existing one, which needs the permission to update it.",
        query=(
            QueryParameter("upsert", "Update it if it exists and differs.", "boolean"),
            QueryParameter("dryRun", "Only validate it.", "boolean"),
        ),
        request_schema=schema.build_object_schema(
            "metadata", "spec", metadata=schema.METADATA, spec=schema.OBJECT_SCHEMA
        ),
        response_schema=APPLICATION_SET_SCHEMA,
        tag=TAG,
        operation_id="ApplicationSetService_Create",
    ),
    Route(
        "POST",
        f"{_PATH}/generate",
        RequiresPermission("applicationsets", "create", read_application_set_to_generate),
        refuse_generate,
        "Not supported.",
        request_schema=schema.OBJECT_SCHEMA,
        tag=TAG,
        operation_id="ApplicationSetService_Generate",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}",
        READ_PERMISSION,
        get_application_set,
        "Get an ApplicationSet.",
        query=(NAMESPACE_PARAMETER, FIELDS),
        response_schema=APPLICATION_SET_SCHEMA,
        tag=TAG,
        operation_id="ApplicationSetService_Get",
    ),
    Route(
        "DELETE",
        f"{_PATH}/{{name}}",
        RequiresPermission("applicationsets", "delete", find_application_set),
        delete_application_set,
        "Delete an ApplicationSet.",
        query=(NAMESPACE_PARAMETER,),
        response_schema=schema.NOTHING,
        tag=TAG,
        operation_id="ApplicationSetService_Delete",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/resource-tree",
        READ_PERMISSION,
        get_resource_tree,
        "List the visible Applications that it owns.",
        query=(NAMESPACE_PARAMETER,),
        response_schema=schema.TREE,
        tag=TAG,
        operation_id="ApplicationSetService_ResourceTree",
    ),
    Route(
        "GET",
        f"{_PATH}/{{name}}/events",
        READ_PERMISSION,
        list_events,
        "List Events of an ApplicationSet.",
        query=(NAMESPACE_PARAMETER,),
        response_schema=schema.EVENTS,
        tag=TAG,
        operation_id="ApplicationSetService_ListResourceEvents",
    ),
)
