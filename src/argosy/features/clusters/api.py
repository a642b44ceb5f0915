"""Argo CD API routes for clusters.

In: a request. Out: Clusters in Argo CD's shape. Never: returns credentials; writes an
address other than the one the permission check covered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.clusters import service
from argosy.features.clusters.connection_state import ClusterStateCache
from argosy.features.clusters.service_account_token_lifecycle import rotate_token
from argosy.features.repositories.api import STATE_SCHEMA
from argosy.gitops.application.canonical_cluster_address import parse_cluster_address
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.gitops.cluster_view.cluster_view import ClusterView
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader
from argosy.web.api.paging import ARGO_PAGING, FIELDS, build_argo_page, select_fields
from argosy.web.caller_application_service import build_service
from argosy.web.objects_of_visible_applications import count_applications_by_server
from argosy.web.query_text import unescape_query_text
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, ResolvedObject, Route

OPENAPI_TAG: Final = "clusters"
LABELS_SCHEMA: Final = {"type": "object", "additionalProperties": schema.STRING_SCHEMA}
# An allow-list: no other field of the config is returned.
CONFIG_SCHEMA: Final = schema.build_object_schema(
    username=schema.STRING_SCHEMA,
    tlsClientConfig=schema.build_object_schema(insecure=schema.BOOLEAN_SCHEMA, serverName=schema.STRING_SCHEMA),
    awsAuthConfig=schema.build_object_schema(clusterName=schema.STRING_SCHEMA, roleARN=schema.STRING_SCHEMA),
    execProviderConfig=schema.build_object_schema(command=schema.STRING_SCHEMA, apiVersion=schema.STRING_SCHEMA),
)
CLUSTER_SCHEMA: Final = schema.build_object_schema(
    server=schema.STRING_SCHEMA,
    name=schema.STRING_SCHEMA,
    config=CONFIG_SCHEMA,
    connectionState=STATE_SCHEMA,
    serverVersion=schema.STRING_SCHEMA,
    namespaces=schema.build_array_schema(schema.STRING_SCHEMA),
    clusterResources=schema.BOOLEAN_SCHEMA,
    project=schema.STRING_SCHEMA,
    shard=schema.INTEGER_SCHEMA,
    refreshRequestedAt=schema.STRING_SCHEMA,
    labels=LABELS_SCHEMA,
    annotations=LABELS_SCHEMA,
    info=schema.build_object_schema(
        applicationsCount=schema.INTEGER_SCHEMA,
        apiVersions=schema.build_array_schema(schema.STRING_SCHEMA),
        cacheInfo=schema.OBJECT_SCHEMA,
        connectionState=STATE_SCHEMA,
        serverVersion=schema.STRING_SCHEMA,
    ),
)
REQUEST_SCHEMA: Final = schema.build_object_schema(
    server=schema.STRING_SCHEMA,
    name=schema.STRING_SCHEMA,
    config=schema.OBJECT_SCHEMA,
    namespaces=schema.build_array_schema(schema.STRING_SCHEMA),
    clusterResources=schema.BOOLEAN_SCHEMA,
    project=schema.STRING_SCHEMA,
    shard={"type": ["string", "integer"]},
    labels=LABELS_SCHEMA,
    annotations=LABELS_SCHEMA,
)


async def find_cluster(request: RequestContext) -> ResolvedObject | None:
    """Find the cluster by its address, or by its name with `?id.type=name`."""
    cluster_id, is_name = _read_cluster_id(request, request.path_parameters["id"])
    declared = await service.find_cluster(build_service(request), cluster_id, is_name=is_name)
    return ResolvedObject(declared, service.rbac_name(declared)) if declared else None


def _read_cluster_id(request: RequestContext, cluster_id: str) -> tuple[str, bool]:
    """Return an address or a name, and whether it is a name. argo: the type name_escaped escapes a name once more."""
    id_type = request.query.get_text("id.type")
    if id_type == "name_escaped":
        cluster_id = unescape_query_text(cluster_id, "id.value")
    return cluster_id, id_type in ("name", "name_escaped")


async def read_new_cluster(request: RequestContext) -> ResolvedObject | None:
    body = await request.read_json_object()
    return ResolvedObject(body, _build_rbac_name(body), is_from_request_only=True)


def _build_rbac_name(body: Mapping[str, Any]) -> str:
    values = service.read_values(body)
    return f"{values['project']}/{values['server']}" if values["project"] else values["server"]


async def list_clusters(states: ClusterStateCache, request: RequestContext) -> JsonResponse:
    """argo: the id, the name and the address all filter."""
    escaped_id = unescape_query_text(request.query.get_text("id.value"), "id.value")
    cluster_id, is_name = _read_cluster_id(request, escaped_id)
    names = {request.query.get_text("name"), cluster_id if is_name else ""} - {""}
    servers = {request.query.get_text("server"), "" if is_name else cluster_id} - {""}
    addresses = {parse_cluster_address(server) for server in servers}
    clusters = [
        cluster
        for cluster in await service.list_clusters(build_service(request))
        if addresses <= {service.read_server(cluster)}
        and names <= {cluster.get_stripped("name")}
        and request.is_allowed("clusters", "get", service.rbac_name(cluster))
    ]
    return build_argo_page(
        request,
        list(await asyncio.gather(*(_build_cluster_response(request, cluster, states) for cluster in clusters))),
    )


async def get_cluster(states: ClusterStateCache, request: RequestContext) -> JsonResponse:
    return select_fields(request, await _build_cluster_response(request, request.subject, states))


async def _build_cluster_response(
    request: RequestContext, declared: DeclaredSecret, states: ClusterStateCache
) -> dict[str, Any]:
    connection = await states.get_state(build_service(request), declared)
    server = service.read_server(declared)
    return service.cluster_to_wire(
        declared,
        *connection,
        count_applications_by_server(request)[server],
        request.cluster_view.rules.diff.masked_annotations,
        _build_cache_info(request.cluster_view) if server == service.IN_CLUSTER_SERVER else {},
    )


def _build_cache_info(cluster_view: ClusterView) -> dict[str, Any]:
    """argo: figures of the server's cache, which only its own cluster has."""
    figures = cluster_view.cache_figures
    if figures is None:
        return {}
    return {
        "resourcesCount": figures.objects,
        "apisCount": figures.kinds,
        "lastCacheSyncTime": format_timestamp(figures.synced_at),
    }


async def create_cluster(states: ClusterStateCache, request: RequestContext) -> JsonResponse:
    app_service, is_upsert = build_service(request), request.query.get_bool("upsert")
    existing = await service.find_cluster(app_service, service.read_values(request.subject)["server"])
    if existing is not None:  # an error must not reveal a cluster that the caller may not see
        # The cluster that argosy runs in exists without a Secret: a new Secret changes its name and project for all.
        is_change = is_upsert or existing is service.IN_CLUSTER_DECLARATION
        request.require_permission("clusters", "update" if is_change else "get", service.rbac_name(existing))
    cluster = await service.add_cluster(app_service, request.subject, is_upsert=is_upsert)
    return JsonResponse(await _build_cluster_response(request, cluster, states))


async def update_cluster(states: ClusterStateCache, request: RequestContext) -> JsonResponse:
    """Check the permission for both the current and the new object name."""
    body, existing = await request.read_json_object(), request.subject
    server = service.read_server(existing)
    if parse_cluster_address(BodyReader(body).get_text("server")) not in ("", server):
        raise UserError("differs from the server in the path; send the same", where="server")
    updated_fields = request.query.get_all("updatedFields")
    if not updated_fields or "project" in updated_fields:
        rbac_name = _build_rbac_name({**body, "server": server})
        if rbac_name != request.rbac_object:
            request.require_permission("clusters", "update", rbac_name)
    cluster = await service.update_cluster(build_service(request), existing, body, updated_fields)
    return JsonResponse(await _build_cluster_response(request, cluster, states))


async def delete_cluster(request: RequestContext) -> JsonResponse:
    await service.remove_cluster(build_service(request), request.subject)
    return JsonResponse({})


async def invalidate_cache(states: ClusterStateCache, request: RequestContext) -> JsonResponse:
    app_service = build_service(request)
    await service.request_cache_invalidation(app_service, request.subject)
    refreshed = await service.find_cluster(app_service, service.read_server(request.subject))
    return JsonResponse(await _build_cluster_response(request, refreshed or request.subject, states))


async def rotate_auth(request: RequestContext) -> JsonResponse:
    app_service = build_service(request)
    if app_service.opener is None:
        raise UserError(
            "this server cannot connect to other clusters; use: argosy cluster rotate", where=request.rbac_object
        )
    await rotate_token(app_service, request.subject, app_service.opener)
    return JsonResponse({})


_PATH: Final = "/api/v1/clusters"
ID_TYPE_PARAMETER: Final = QueryParameter(
    "id.type", "`name`: the id is the cluster's name, not its address. `name_escaped`: it is escaped once more."
)


def build_routes(states: ClusterStateCache) -> tuple[Route, ...]:
    return (*_build_collection_routes(states), *_build_single_routes(states), *_build_action_routes(states))


def _build_collection_routes(states: ClusterStateCache) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            _PATH,
            FilteredList("clusters", "get"),
            partial(list_clusters, states),
            "List clusters.",
            query=(
                QueryParameter("server", "Only the cluster with this address."),
                QueryParameter("name", "Only the cluster with this name."),
                ID_TYPE_PARAMETER,
                QueryParameter("id.value", "Only the cluster with this address, or name: see `id.type`."),
                *ARGO_PAGING,
            ),
            response_schema=schema.build_object_schema(
                metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(CLUSTER_SCHEMA)
            ),
            tag=OPENAPI_TAG,
            operation_id="ClusterService_List",
        ),
        Route(
            "POST",
            _PATH,
            RequiresPermission("clusters", "create", read_new_cluster),
            partial(create_cluster, states),
            "Create a cluster. With `upsert`, an existing cluster is updated, which needs the permission to update it.",
            query=(QueryParameter("upsert", "Update the cluster if it exists and differs.", "boolean"),),
            request_schema={**REQUEST_SCHEMA, "required": ["server"]},
            response_schema=CLUSTER_SCHEMA,
            tag=OPENAPI_TAG,
            operation_id="ClusterService_Create",
        ),
    )


def _build_single_routes(states: ClusterStateCache) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            f"{_PATH}/{{id}}",
            RequiresPermission("clusters", "get", find_cluster),
            partial(get_cluster, states),
            "Read a cluster.",
            query=(ID_TYPE_PARAMETER, FIELDS),
            response_schema=CLUSTER_SCHEMA,
            tag=OPENAPI_TAG,
            operation_id="ClusterService_Get",
        ),
        Route(
            "PUT",
            f"{_PATH}/{{id}}",
            RequiresPermission("clusters", "update", find_cluster),
            partial(update_cluster, states),
            "Update a cluster. Credentials that are not sent are kept, unless TLS verification would be weakened.",
            query=(ID_TYPE_PARAMETER, QueryParameter("updatedFields", "Update only these fields.", "array")),
            request_schema=REQUEST_SCHEMA,
            response_schema=CLUSTER_SCHEMA,
            tag=OPENAPI_TAG,
            operation_id="ClusterService_Update",
        ),
        Route(
            "DELETE",
            f"{_PATH}/{{id}}",
            RequiresPermission("clusters", "delete", find_cluster),
            delete_cluster,
            "Delete a cluster.",
            query=(ID_TYPE_PARAMETER,),
            response_schema=schema.NOTHING,
            tag=OPENAPI_TAG,
            operation_id="ClusterService_Delete",
        ),
    )


def _build_action_routes(states: ClusterStateCache) -> tuple[Route, ...]:
    return (
        Route(
            "POST",
            f"{_PATH}/{{id}}/invalidate-cache",
            RequiresPermission("clusters", "update", find_cluster),
            partial(invalidate_cache, states),
            "Invalidate the cache of a cluster.",
            query=(ID_TYPE_PARAMETER,),
            response_schema=CLUSTER_SCHEMA,
            tag=OPENAPI_TAG,
            operation_id="ClusterService_InvalidateCache",
        ),
        Route(
            "POST",
            f"{_PATH}/{{id}}/rotate-auth",
            RequiresPermission("clusters", "update", find_cluster),
            rotate_auth,
            "Create a new token for the cluster's service account and revoke the old one.",
            query=(ID_TYPE_PARAMETER,),
            response_schema=schema.NOTHING,
            tag=OPENAPI_TAG,
            operation_id="ClusterService_RotateAuth",
        ),
    )
