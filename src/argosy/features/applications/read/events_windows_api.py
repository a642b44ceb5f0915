"""API for the Events, links and sync windows of an Application.

In: a request. Out: Argo CD's format. Never: Events of objects outside the Application.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.applications.objects.api import OBJECT_PARAMETERS
from argosy.features.applications.read.api import APPLICATION_PARAMETERS
from argosy.features.applications.read.manifests_tree_api import APPLICATION_PATH, READ_PERMISSION, read_object_selector
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import SyncWindow
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.deep_links import DeepLink, find_managed_by_url, render_links
from argosy.gitops.application_client.event_list import events_of
from argosy.gitops.application_client.owned_objects import NotOwnedObject, load_owned_object, walk_owned_objects
from argosy.gitops.diff import mask_secrets
from argosy.gitops.policy.sync_windows import WindowError, evaluate_sync_windows, is_active, selects_application
from argosy.gitops.status.status_json_conversions import as_mapping, omit_empty
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, EVENT
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, build_argo_page
from argosy.web.caller_application_service import build_reader, build_service
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, Route

LINK_SETTINGS: Final = ("application.links", "resource.links")


async def list_events(request: RequestContext) -> JsonResponse:
    query, service = request.query, build_service(request)
    name, namespace, uid = (query.get_text(f"resource{part}") for part in ("Name", "Namespace", "UID"))
    if not name and not uid:
        return build_argo_page(request, await events_of(service, request.subject))
    reader = build_reader(request)
    manifest = await _find_object(reader, request.subject, name, namespace, uid)
    cluster = (service if reader.is_here else reader).cluster
    listing = await cluster.list(EVENT, namespace=manifest["metadata"].get("namespace") or "")
    return build_argo_page(request, [event for event in listing.items if _is_about(event, manifest)])


async def _find_object(reader: ApplicationReader, app: Application, name: str, namespace: str, uid: str) -> Manifest:
    for manifest in await walk_owned_objects(reader, app):
        metadata = manifest["metadata"]
        if (uid and metadata.get("uid") != uid) or (name and metadata.get("name") != name):
            continue
        if (metadata.get("namespace") or "") == namespace:
            return manifest
    # argo: same message
    raise NotOwnedObject(
        f"{name or uid} not found as part of application {app.name}; list its objects: argosy app tree {app.name}"
    )


def _is_about(event: Manifest, manifest: Manifest) -> bool:
    involved_object = as_mapping(event.get("involvedObject"))
    uid = manifest["metadata"].get("uid")
    if uid and involved_object.get("uid"):
        return bool(involved_object["uid"] == uid)
    return bool(
        involved_object.get("kind") == manifest["kind"] and involved_object.get("name") == manifest["metadata"]["name"]
    )


# -- links ---------------------------------------------------------------------------------------------------------


async def list_links(request: RequestContext) -> JsonResponse:
    return JsonResponse(_build_links(build_reader(request), request.subject, LINK_SETTINGS[0], {}))


async def list_object_links(request: RequestContext) -> JsonResponse:
    reader = build_reader(request)
    manifest = await load_owned_object(reader, request.subject, read_object_selector(request.query, "resourceName"))
    (masked_manifest,) = mask_secrets([manifest], reader.reconciler_settings.diff.masked_annotations)
    return JsonResponse(_build_links(reader, request.subject, LINK_SETTINGS[1], {"resource": masked_manifest}))


def _build_links(
    reader: ApplicationReader, app: Application, setting: str, extra_values: dict[str, Any]
) -> dict[str, Any]:
    config_map = reader.cache.get(ResourceKey(*CONFIG_MAP, reader.service.control_namespace, "argocd-cm")) or {}
    settings = as_mapping(config_map.get("data"))
    text, managed_by_url = settings.get(setting), find_managed_by_url(app.wire)
    if not managed_by_url and setting == LINK_SETTINGS[0]:
        managed_by_url = str(settings.get("url") or "")  # argo: links of Applications only
    project = reader.reconciler_settings.projects.get(app.project)
    values = {
        "app": dict(app.wire),
        "application": dict(app.wire),
        "project": dict(project.wire) if project else {},
        "cluster": {
            "server": app.destination.with_in_cluster_alias.server,
            "name": app.destination.with_in_cluster_alias.name,
        },
        **({"managedByURL": managed_by_url} if managed_by_url else {}),
        **extra_values,
    }
    built_links, _ = render_links(text if isinstance(text, str) else "", values, f"argocd-cm: {setting}")
    return {"items": [_link_to_wire(link) for link in built_links]}


def _link_to_wire(link: DeepLink) -> dict[str, str]:
    return {"url": link.url, "title": link.title, **omit_empty(description=link.description, iconClass=link.icon)}


# -- windows -------------------------------------------------------------------------------------------------------


async def list_sync_windows(request: RequestContext) -> JsonResponse:
    reader, now = build_reader(request), utc_now()
    app = reader.reconciler_settings.clusters.resolve_destination(request.subject)
    assigned = [window for window in reader.get_project(app).windows if selects_application(window, app)]
    active = [window for window in assigned if _is_window_active(window)]
    can_sync = evaluate_sync_windows(assigned, app, now, is_manual=True).is_allowed
    response = omit_empty(
        activeWindows=[_window_to_wire(window) for window in active],
        assignedWindows=[_window_to_wire(window) for window in assigned],
    )
    return JsonResponse({**response, "canSync": can_sync})


def _is_window_active(window: SyncWindow) -> bool:
    try:
        return is_active(window, utc_now())
    except WindowError:
        return False


def _window_to_wire(window: SyncWindow) -> dict[str, Any]:
    response = {"kind": window.kind, "schedule": window.schedule, "duration": window.duration}
    return {**response, "manualSync": window.manual_sync}


ROUTES = (
    Route(
        "GET",
        f"{APPLICATION_PATH}/events",
        READ_PERMISSION,
        list_events,
        "List Events of an Application or of one of its objects.",
        query=(
            QueryParameter("resourceNamespace", "The namespace of the object."),
            QueryParameter("resourceName", "The name of the object."),
            QueryParameter("resourceUID", "The uid of the object."),
            *APPLICATION_PARAMETERS,
            *ARGO_PAGING,
        ),
        response_schema=schema.EVENTS,
        tag="applications",
        operation_id="ApplicationService_ListResourceEvents",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/links",
        READ_PERMISSION,
        list_links,
        "List the links of an Application (application.links in argocd-cm).",
        query=(QueryParameter("namespace", "Ignored: use appNamespace."), *APPLICATION_PARAMETERS),
        response_schema=schema.LINKS,
        tag="applications",
        operation_id="ApplicationService_ListLinks",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/resource/links",
        READ_PERMISSION,
        list_object_links,
        "List the links of an object (resource.links in argocd-cm).",
        query=OBJECT_PARAMETERS,
        response_schema=schema.LINKS,
        tag="applications",
        operation_id="ApplicationService_ListResourceLinks",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/syncwindows",
        READ_PERMISSION,
        list_sync_windows,
        "List the sync windows of an Application.",
        query=APPLICATION_PARAMETERS,
        response_schema=schema.WINDOWS,
        tag="applications",
        operation_id="ApplicationService_GetApplicationSyncWindows",
    ),
)
