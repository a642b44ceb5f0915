"""Finds the Application that a request is about, in the cluster view, and its RBAC object name.

In: a request. Out: ResolvedObject, or None if it does not exist. Never: authorizes; reads from the cluster; lets a
caller tell "not found" from "forbidden".
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.gitops.application import Application, read_application
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION
from argosy.languages.globs import matches_glob
from argosy.web.request import NotFoundOrForbidden, ObjectNotFound, RequestContext
from argosy.web.route import ResolvedObject


async def resolve_application(request: RequestContext) -> ResolvedObject | None:
    """Resolve `{name}` and `?appNamespace=` (API) or `{ns}/{name}` (pages) to an Application."""
    name = request.path_parameters["name"]
    namespace = (
        request.path_parameters.get("ns") or request.query.get_text("appNamespace") or request.service.control_namespace
    )
    manifest = find_application_manifest(request, namespace, name)
    if project := request.query.get_text("project"):
        return _resolve_in_project(request, project, namespace, name, manifest)
    return None if manifest is None else build_resolved_application(request, manifest)


async def resolve_application_for_logs(request: RequestContext) -> ResolvedObject | None:
    """argo: logs require `get` on the Application in addition to `get` on its logs."""
    resolved = await resolve_application(request)
    return (
        resolved if resolved is not None and request.is_allowed("applications", "get", resolved.rbac_object) else None
    )


def find_application_manifest(request: RequestContext, namespace: str, name: str) -> Manifest | None:
    """argo: an Application outside its project's sourceNamespaces is treated as not found."""
    manifest: Manifest | None = request.cluster_view.cache.get(ResourceKey(*APPLICATION, namespace, name))
    return manifest if manifest is not None and is_in_allowed_namespace(request, manifest) else None


def is_in_allowed_namespace(request: RequestContext, manifest: Manifest) -> bool:
    namespace, control = manifest["metadata"]["namespace"], request.service.control_namespace
    if namespace == control:
        return True
    project = request.cluster_view.cache.get(ResourceKey(*APP_PROJECT, control, read_project_name(manifest))) or {}
    spec = project.get("spec")
    source_namespaces = spec.get("sourceNamespaces") if isinstance(spec, dict) else None
    return isinstance(source_namespaces, list) and any(
        matches_glob(str(pattern), namespace) for pattern in source_namespaces
    )


def build_resolved_application(request: RequestContext, manifest: Manifest) -> ResolvedObject:
    """Parse the Application only after authorization, so that the time of a refusal does not reveal its size."""
    metadata = manifest["metadata"]
    rbac_object = get_application_rbac_name(
        request, read_project_name(manifest), metadata["namespace"], metadata["name"]
    )
    return ResolvedObject(None, rbac_object, build_subject=lambda: _read_application(manifest))


def read_application_or_none(manifest: Manifest) -> Application | None:
    """Parse an Application; None if it is invalid (its own page shows the error)."""
    try:
        return _read_application(manifest)
    except UserError:
        return None


def _read_application(manifest: Manifest) -> Application:
    return read_application(manifest, f"Application {manifest['metadata']['name']}")


def get_application_rbac_name(request: RequestContext, project: str, namespace: str, name: str) -> str:
    return build_rbac_name(request.service.control_namespace, project, namespace, name)


def build_rbac_name(control_namespace: str, project: str, namespace: str, name: str) -> str:
    """argo: RBAC object name; includes the namespace if it is not the control plane's."""
    return f"{project}/{name}" if namespace == control_namespace else f"{project}/{namespace}/{name}"


def read_project_name(manifest: Manifest) -> str:
    spec = manifest.get("spec")
    project = spec.get("project") if isinstance(spec, dict) else ""
    return project if isinstance(project, str) and project else "default"


def _resolve_in_project(
    request: RequestContext, project: str, namespace: str, name: str, manifest: Manifest | None
) -> ResolvedObject:
    """argo: only a caller who may see the Application in the project given by `?project=` gets "not found"."""
    if not request.is_allowed("applications", "get", get_application_rbac_name(request, project, namespace, name)):
        raise NotFoundOrForbidden
    if manifest is None or read_project_name(manifest) != project:
        # the message quotes the request only, nothing of the stored object
        raise ObjectNotFound(f"applications.argoproj.io {name!r} not found")
    return build_resolved_application(request, manifest)
