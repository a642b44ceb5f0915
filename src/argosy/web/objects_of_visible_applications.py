"""Objects that Applications own, visible to everyone who may see the owning Application.

In: a request. Out: ResolvedObject, and lists without objects that the caller may not see. Never: shows an object
without an Application, except to callers who may see all Applications.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from argosy.gitops.application import read_application, read_destination
from argosy.gitops.cluster_view.owning_application import owner_of
from argosy.gitops.reconciler.impersonation import user_to_impersonate
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.client import Cluster, User
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, INFERENCE_SERVICE, NOTEBOOK_JOB
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import (
    get_application_rbac_name,
    is_in_allowed_namespace,
    read_project_name,
)
from argosy.web.route import ResolvedObject

ALL_APPLICATIONS: Final = "*/*"  # matched by a policy for */*, but not by a policy for one project
TRY_ACTION: Final = "action/serving.kserve.io/InferenceService/try"
RESTART_ACTION: Final = "action/serving.kserve.io/InferenceService/restart"
RUN_ACTION: Final = "action/mlops.mlops.dev/NotebookValidationJob/run"


async def resolve_model(request: RequestContext) -> ResolvedObject | None:
    return _resolve_object(request, INFERENCE_SERVICE)


async def resolve_notebook_job(request: RequestContext) -> ResolvedObject | None:
    return _resolve_object(request, NOTEBOOK_JOB)


async def resolve_whole_installation(request: RequestContext) -> ResolvedObject | None:
    """Resolve a route that is about the whole installation."""
    return ResolvedObject(None, ALL_APPLICATIONS)


def _resolve_object(request: RequestContext, kind: GroupKind) -> ResolvedObject | None:
    key = ResourceKey(*kind, request.path_parameters["ns"], request.path_parameters["name"])
    manifest = request.cluster_view.cache.get(key)
    return None if manifest is None else ResolvedObject(manifest, get_owner_rbac_object(request, manifest))


def get_owner_rbac_object(request: RequestContext, manifest: Manifest) -> str:
    """Return the RBAC object name of the owning Application."""
    app = find_owning_application(request, manifest)
    if app is None:
        return ALL_APPLICATIONS
    metadata = app["metadata"]
    return get_application_rbac_name(request, read_project_name(app), str(metadata["namespace"]), str(metadata["name"]))


def find_owning_application(request: RequestContext, manifest: Manifest) -> Manifest | None:
    cluster_view = request.cluster_view
    app = owner_of(manifest, cluster_view.cache, cluster_view.rules.tracking, request.service.control_namespace)
    return app if app is not None and is_in_allowed_namespace(request, app) else None


def build_impersonating_cluster(request: RequestContext, manifest: Manifest) -> Cluster:
    """Return a cluster client with the permissions of the syncs of the object's Application. Raises PolicyError."""
    cluster: Cluster = request.service.cluster
    app, reader = find_owning_application(request, manifest), request.cluster_view.reader
    if app is None or not reader.reconciler_settings.impersonation.is_enabled:
        return cluster
    owner = read_application(app, f"Application {app['metadata']['name']}")
    user = user_to_impersonate(owner, reader.get_project(owner), reader.reconciler_settings)
    return cluster.acting_as(User(user)) if user else cluster


def get_owner_page_path(request: RequestContext, manifest: Manifest) -> str:
    app = find_owning_application(request, manifest)
    return f"/apps/{app['metadata']['namespace']}/{app['metadata']['name']}" if app else ""


def list_visible_objects(request: RequestContext, kind: GroupKind) -> list[Manifest]:
    """List visible objects of a kind by namespace and name, with Secret values of their Applications masked."""
    seen = (manifest for manifest in request.cluster_view.cache.list(kind) if _can_see(request, manifest))
    masked = [request.masks.mask_object(manifest, find_owning_application(request, manifest)) for manifest in seen]
    return sorted(
        masked, key=lambda manifest: (str(manifest["metadata"].get("namespace")), str(manifest["metadata"]["name"]))
    )


def list_all_applications(request: RequestContext) -> list[Manifest]:
    return [
        manifest
        for manifest in request.cluster_view.cache.list(GroupKind(*APPLICATION))
        if is_in_allowed_namespace(request, manifest)
    ]


def list_visible_applications(request: RequestContext) -> list[Manifest]:
    visible = []
    for app in list_all_applications(request):
        metadata = app["metadata"]
        rbac_object = get_application_rbac_name(
            request, read_project_name(app), str(metadata["namespace"]), str(metadata["name"])
        )
        if request.is_allowed("applications", "get", rbac_object):
            visible.append(request.masks.mask_application(app))
    return visible


def count_applications_by_server(request: RequestContext) -> Counter[str]:
    """Count the visible Applications per destination server URL."""
    if request.memory.application_counts is None:
        clusters = request.cluster_view.rules.clusters
        counts: Counter[str] = Counter()
        for manifest in list_visible_applications(request):
            destination = as_mapping(as_mapping(manifest.get("spec")).get("destination"))
            cluster = clusters.find(
                read_destination(str(destination.get("server") or ""), str(destination.get("name") or ""))
            )
            counts[cluster.server if cluster else ""] += 1
        request.memory.application_counts = counts
    return request.memory.application_counts


def can_see_all_applications(request: RequestContext, visible_count: int) -> bool:
    """True if no Application is hidden. A deny rule may hide some, and unowned objects may belong to those."""
    is_allowed = request.is_allowed("applications", "get", ALL_APPLICATIONS)
    return is_allowed and visible_count == len(list_all_applications(request))


def _can_see(request: RequestContext, manifest: Manifest) -> bool:
    return request.is_allowed("applications", "get", get_owner_rbac_object(request, manifest))
