"""API to create, update, patch and delete Applications.

In: a request. Out: the updated Application. Never: writes a project, source or destination that is not permitted;
takes status, owners or the initiator of an operation from a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.applications.application_lookup_by_request_body import (
    find_application_in_body,
    find_application_in_manifest,
)
from argosy.features.applications.read.api import APPLICATION_PARAMETERS
from argosy.gitops.application import Application, SyncRequest, read_application
from argosy.gitops.application.sources import remove_empty_options
from argosy.gitops.application_client.application_actions import BACKGROUND, FOREGROUND, delete_application
from argosy.gitops.application_client.application_patches_and_sources import PATCH_TYPES, apply_patch
from argosy.gitops.application_client.creation_and_update import change_and_return, create_application
from argosy.gitops.application_client.deep_links import describe_managed_by_url_problem
from argosy.gitops.application_client.source_validation import check_sources_render
from argosy.gitops.application_client.sync_checks import check_local_manifests, needs_override_permission
from argosy.gitops.application_client.sync_operation_builder import check_no_automated_sync
from argosy.gitops.policy.projects import permits_application_namespace
from argosy.gitops.reconciler.unknown_state import validate_application
from argosy.kube.objects import Manifest
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.well_known_kinds import ARGOPROJ_API_VERSION
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.body_fields import BodyReader, rename_flags_to_body_fields
from argosy.web.caller_application_service import build_reader, build_service, wait_until_visible
from argosy.web.error_details import report_without_code
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.requested_application_lookup import get_application_rbac_name, read_project_name, resolve_application
from argosy.web.responses import JsonResponse
from argosy.web.route import QueryParameter, RequiresPermission, ResolvedObject, Route

WRITABLE_METADATA: Final = ("labels", "annotations", "finalizers")  # the only metadata taken from a body
APPLICATION_TYPE_META: Final = {"apiVersion": ARGOPROJ_API_VERSION, "kind": "Application"}
BuildManifest = Callable[[Mapping[str, Any]], Mapping[str, Any]]


# -- create --------------------------------------------------------------------------------------------------------


async def read_application_to_create(request: RequestContext) -> ResolvedObject:
    """Return the Application in the body, with the RBAC name that it will have."""
    body = BodyReader(await request.read_json_object())
    metadata = body.get_body("metadata") or BodyReader({})
    name, namespace = (
        metadata.get_text("name"),
        metadata.get_text("namespace") or request.service.control_namespace,
    )
    if not name:
        raise UserError("missing name of the Application; send it", where="metadata.name")
    spec = _read_spec(body.values.get("spec"))
    metadata_fields = {
        field_name: metadata.values[field_name]
        for field_name in WRITABLE_METADATA
        if metadata.values.get(field_name) is not None
    }
    manifest: Manifest = {
        **APPLICATION_TYPE_META,
        "metadata": {"name": name, "namespace": namespace, **metadata_fields},
        "spec": spec,
    }
    if (operation := body.get_body("operation")) is not None:
        manifest["operation"] = dict(operation.values)
    rbac_name = get_application_rbac_name(request, read_project_name(manifest), namespace, name)
    return ResolvedObject(manifest, rbac_name, is_from_request_only=True)


async def create_or_upsert_app(request: RequestContext) -> JsonResponse:
    manifest: Manifest = request.subject
    service, app = build_service(request), _read_manifest(manifest)
    _check_operation_permitted(request, manifest, app)
    existing_manifest = await service.get_manifest(app.key)
    if existing_manifest is None:
        _check_project_permits(request, app)
        if request.query.get_bool("validate", True):
            await check_sources_render(request.cluster_view.reader, app)
        await create_application(service, _add_initiator(manifest, request.caller.display_name), upsert=False)
        stored = await service.get_manifest(app.key) or manifest
        await wait_until_visible(request, stored)
        return JsonResponse(dict(stored))
    existing = _read_manifest(existing_manifest)
    existing_rbac_name = get_application_rbac_name(request, existing.project, existing.namespace, existing.name)
    if not request.is_allowed("applications", "get", existing_rbac_name):
        raise NotFoundOrForbidden
    if _are_same(existing_manifest, manifest) and "operation" not in manifest:
        return JsonResponse(dict(existing_manifest))
    if not request.query.get_bool("upsert"):
        message = "existing application spec is different, use upsert flag to force update"  # argo: its words
        raise UserError(f"{message}; send ?upsert=true", where=app.name)
    request.require_permission("applications", "update", existing_rbac_name)
    return JsonResponse(
        dict(
            (
                await _write_application(
                    request,
                    existing,
                    lambda current: _replace_writable_fields(current, _merge_metadata(current, manifest)),
                )
            ).wire
        )
    )


def _are_same(existing: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """argo: Compare the spec and the writable metadata."""
    is_same_metadata = all(
        (existing["metadata"].get(name) or None) == (manifest["metadata"].get(name) or None)
        for name in WRITABLE_METADATA
    )
    return is_same_metadata and is_equal_json(existing.get("spec"), manifest["spec"])


def _merge_metadata(current: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """argo: Merge labels and annotations; replace finalizers."""
    metadata = dict(manifest["metadata"])
    for name in ("labels", "annotations"):
        metadata[name] = {**(current["metadata"].get(name) or {}), **(metadata.get(name) or {})}
    return {**manifest, "metadata": metadata}


def _check_operation_permitted(request: RequestContext, manifest: Manifest, app: Application) -> None:
    """argo: An operation in a new Application needs the permission to sync, and permitted sources from Git."""
    operation = manifest.get("operation")
    if operation is None:
        return
    request.require_permission("applications", "sync", request.rbac_object)
    sync = app.operation.sync if app.operation is not None else SyncRequest()
    refs = sync.revisions or ((sync.revision,) if sync.revision else ())
    if sync.manifests or needs_override_permission(build_reader(request), app, refs):
        request.require_permission("applications", "override", request.rbac_object)
    if sync.manifests:
        check_no_automated_sync(app, is_dry_run=sync.dry_run)
        check_local_manifests(build_reader(request), app, sync.manifests)
    if sync.sources:
        _check_project_permits(request, replace(app, sources=sync.sources))


def _add_initiator(manifest: Manifest, user: str) -> Manifest:
    if "operation" not in manifest:
        return manifest
    return {**manifest, "operation": {**manifest["operation"], "initiatedBy": {"username": user}}}


# -- change --------------------------------------------------------------------------------------------------------


async def update_application(request: RequestContext) -> JsonResponse:
    body = await request.read_json_object()
    requested = {"metadata": body.get("metadata") or {}, "spec": _read_spec(body.get("spec"))}
    return JsonResponse(
        dict(
            (
                await _write_application(
                    request, request.subject, lambda current: _replace_writable_fields(current, requested)
                )
            ).wire
        )
    )


async def update_spec(request: RequestContext) -> JsonResponse:
    spec = _read_spec(await request.read_json_object())
    updated_app = await _write_application(request, request.subject, lambda current: {**current, "spec": spec})
    return JsonResponse(dict(updated_app.wire["spec"]))


async def patch_application(request: RequestContext) -> JsonResponse:
    body = BodyReader(await request.read_json_object())
    text, kind = body.get_text("patch"), body.get_text("patchType") or "json"
    if kind not in PATCH_TYPES:
        raise UserError(f"unknown patch type {kind[:40]!r}; send json or merge", where="patchType")

    def build_manifest(current: Mapping[str, Any]) -> Mapping[str, Any]:
        with report_without_code(), rename_flags_to_body_fields():
            patched_manifest = apply_patch(current, text, kind)
        return _replace_writable_fields(
            current, {"metadata": patched_manifest["metadata"], "spec": _read_spec(patched_manifest.get("spec"))}
        )

    return JsonResponse(dict((await _write_application(request, request.subject, build_manifest)).wire))


def _replace_writable_fields(current: Mapping[str, Any], requested: Mapping[str, Any]) -> dict[str, Any]:
    """argo: Take only spec, labels, annotations and finalizers from the request."""
    kept = {name: value for name, value in current["metadata"].items() if name not in WRITABLE_METADATA}
    metadata_fields = {
        name: requested["metadata"][name] for name in WRITABLE_METADATA if requested["metadata"].get(name)
    }
    return {**current, "spec": requested["spec"], "metadata": {**kept, **metadata_fields}}


async def _write_application(request: RequestContext, app: Application, build_manifest: BuildManifest) -> Application:
    """Check permissions on the exact version that is written, even if it changes concurrently."""
    service = build_service(request)

    def build_checked(current: Mapping[str, Any]) -> Mapping[str, Any]:
        before, manifest = _read_manifest(current), build_manifest(current)
        written = _read_manifest(manifest)
        if before.project != app.project:
            raise NotFoundOrForbidden  # it was moved to another project after authorization
        if written.project != before.project:
            new_rbac_name = get_application_rbac_name(request, written.project, written.namespace, written.name)
            request.require_permission("applications", "create", new_rbac_name)  # argo: both, in the new project
            request.require_permission("applications", "update", new_rbac_name)
        _check_project_permits(request, written)
        return manifest

    if request.query.get_bool("validate", True):
        requested = _read_manifest(build_checked(app.wire))
        if (requested.sources, requested.project) != (app.sources, app.project):
            await check_sources_render(request.cluster_view.reader, requested)
    written, _ = await change_and_return(service, app, build_checked)
    await wait_until_visible(request, written.wire)
    return written


def _check_project_permits(request: RequestContext, app: Application) -> None:
    """argo: The project must permit the Application, regardless of `validate`. No error tells whether it exists."""
    settings = build_reader(request).reconciler_settings
    project = settings.projects.get(app.project)
    if project is None or not permits_application_namespace(project, app, settings.control_namespace):
        raise UserError(f'app is not allowed in project "{app.project}", or the project does not exist')
    messages = [item.message for item in validate_application(app, project, settings)]
    if problem := describe_managed_by_url_problem(app.wire):
        messages.append(problem)
    if messages:
        raise UserError(f"application spec for {app.name} is invalid: InvalidSpecError: {'; '.join(messages)}")


def _read_manifest(manifest: Mapping[str, Any]) -> Application:
    return read_application(manifest, f"Application {manifest['metadata'].get('name')}")


def _read_spec(spec: Any) -> dict[str, Any]:
    """Read the spec; raise UserError if repository or destination is missing."""
    body = BodyReader(spec if spec is not None else {}, "spec")
    sources = body.get_bodies("sources") or [
        candidate for candidate in (body.get_body("source"),) if candidate is not None
    ]
    for source in sources:
        for name in ("repoURL", "path", "chart", "ref"):
            source.get_text(name)
    if not sources or not all(candidate.get_text("repoURL") for candidate in sources):
        raise UserError("missing repository; send spec.source.repoURL and path, or chart", where="spec.source")
    destination = body.get_body("destination") or BodyReader({})
    if not destination.get_text("server") and not destination.get_text("name"):
        message = "missing cluster; send spec.destination.server, such as https://kubernetes.default.svc"
        raise UserError(message, where="spec.destination")
    return _normalize_spec(body.values)


def _normalize_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """argo: The project is never empty; without settings there is no sync policy, kustomize, helm or directory."""
    normalized = {**spec, "project": spec.get("project") or "default"}
    if not normalized.get("syncPolicy"):
        normalized.pop("syncPolicy", None)
    if isinstance(source := normalized.get("source"), dict):
        normalized["source"] = remove_empty_options(source)
    if isinstance(sources := normalized.get("sources"), list):
        normalized["sources"] = [remove_empty_options(source) for source in sources]
    return normalized


# -- delete --------------------------------------------------------------------------------------------------------


async def delete_requested_app(request: RequestContext) -> JsonResponse:
    is_cascading, policy = request.query.get_bool("cascade", True), request.query.get_text("propagationPolicy")
    if not is_cascading and policy:
        raise UserError("cannot set propagation policy when cascading is disabled; leave one out")  # argo: its words
    if policy not in ("", FOREGROUND, BACKGROUND):
        raise UserError(f"invalid propagation policy: {policy[:40]!r}; send foreground or background")
    await delete_application(
        build_service(request), request.subject, cascades=is_cascading, policy=policy or FOREGROUND
    )
    return JsonResponse({})


VALIDATE_PARAMETER: Final = QueryParameter(
    "validate", "Render new sources first (default: true). The project must always permit the Application.", "boolean"
)
ROUTES = (
    Route(
        "POST",
        "/api/v1/applications",
        RequiresPermission("applications", "create", read_application_to_create),
        create_or_upsert_app,
        "Create an Application.",
        query=(QueryParameter("upsert", "Overwrite an existing Application.", "boolean"), VALIDATE_PARAMETER),
        request_schema=schema.APPLICATION_INPUT,
        response_schema=schema.APPLICATION,
        tag="applications",
        operation_id="ApplicationService_Create",
    ),
    Route(
        "PUT",
        "/api/v1/applications/{name}",
        RequiresPermission("applications", "update", find_application_in_manifest),
        update_application,
        "Update an Application.",
        query=(VALIDATE_PARAMETER, *APPLICATION_PARAMETERS),
        request_schema=schema.APPLICATION_INPUT,
        response_schema=schema.APPLICATION,
        tag="applications",
        operation_id="ApplicationService_Update",
    ),
    Route(
        "PUT",
        "/api/v1/applications/{name}/spec",
        RequiresPermission("applications", "update", resolve_application),
        update_spec,
        "Update the spec of an Application.",
        query=(VALIDATE_PARAMETER, *APPLICATION_PARAMETERS),
        request_schema=schema.SPEC,
        response_schema=schema.SPEC,
        tag="applications",
        operation_id="ApplicationService_UpdateSpec",
    ),
    Route(
        "PATCH",
        "/api/v1/applications/{name}",
        RequiresPermission("applications", "update", find_application_in_body),
        patch_application,
        "Patch an Application.",
        request_schema=schema.PATCH,
        response_schema=schema.APPLICATION,
        tag="applications",
        operation_id="ApplicationService_Patch",
    ),
    Route(
        "DELETE",
        "/api/v1/applications/{name}",
        RequiresPermission("applications", "delete", resolve_application),
        delete_requested_app,
        "Delete an Application.",
        query=(
            QueryParameter("cascade", "Also delete its objects (default: true).", "boolean"),
            QueryParameter("propagationPolicy", "foreground (default) or background."),
            *APPLICATION_PARAMETERS,
        ),
        response_schema=schema.NOTHING,
        tag="applications",
        operation_id="ApplicationService_Delete",
    ),
)
