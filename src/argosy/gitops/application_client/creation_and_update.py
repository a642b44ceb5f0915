"""Creates and updates Applications.

In: an ApplicationService, a manifest. Out: `created`, `updated` or `unchanged`. Never: overwrites an Application unless
requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_service import ApplicationService, current_timestamp
from argosy.gitops.application_client.spec_flags import check_deliverable
from argosy.gitops.status.application_event_manifests import UNKNOWN_USER, EventReason, build_event
from argosy.kube.objects import Manifest, read_yaml_documents
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.patch import merge_patch


def read_application_file(path: str, content: bytes) -> dict[str, Any]:
    documents = [document for document in read_yaml_documents(content, where=path) if isinstance(document, dict)]
    apps = [document for document in documents if document.get("kind") == "Application"]
    if len(apps) != 1:
        message = f"contains {len(apps)} Applications; expected exactly one"
        raise UserError(message, where=path)
    return dict(apps[0])


def load_content(path: str, read_stdin: Callable[[], bytes]) -> bytes:
    return read_stdin() if path == "-" else Path(path).read_bytes()


async def create_application(service: ApplicationService, manifest: Manifest, *, upsert: bool) -> str:
    """Return `created`, `updated` or `unchanged`."""
    check_deliverable(manifest)
    new_app = read_application(manifest, f"Application {manifest['metadata'].get('name')}")
    before = await service.get_manifest(new_app.key)
    if before is None:
        created = read_application(await service.cluster.create(manifest))
        await _record_event(service, created, EventReason.RESOURCE_CREATED, "created application")
        return "created"
    existing = read_application(before)
    if is_equal_json(before.get("spec"), manifest.get("spec")) and _has_metadata_of(before, manifest):
        return "unchanged"
    if not upsert:
        raise UserError(
            f"existing application spec is different: {new_app.name} in {new_app.namespace}; "
            f"overwrite it with --upsert, or see how: argosy app get {new_app.name} -o yaml"
        )
    await change_application(service, existing, lambda current: _overwrite_manifest(current, manifest))
    return "updated"


def _overwrite_manifest(current: Mapping[str, Any], manifest: Manifest) -> dict[str, Any]:
    metadata = manifest["metadata"]
    new_metadata = {name: metadata[name] for name in ("labels", "annotations", "finalizers") if name in metadata}
    return {**current, "spec": manifest["spec"], "metadata": {**current["metadata"], **new_metadata}}


def _has_metadata_of(before: Manifest, manifest: Manifest) -> bool:
    """True if the live object has the labels, annotations and finalizers of the manifest."""
    live_metadata, wanted_metadata = before["metadata"], manifest["metadata"]
    return all(
        (wanted_metadata.get(name) or {}).items() <= (live_metadata.get(name) or {}).items()
        for name in ("labels", "annotations")
    ) and set(wanted_metadata.get("finalizers") or ()) <= set(live_metadata.get("finalizers") or ())


async def change_application(
    service: ApplicationService, app: Application, build_manifest: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> bool:
    """Change an Application; return True if anything changed."""
    return (await change_and_return(service, app, build_manifest))[1]


async def change_and_return(
    service: ApplicationService, app: Application, build_manifest: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> tuple[Application, bool]:
    """Change an Application; return it and whether anything changed."""
    has_changed = [False]

    def build_patch(current: Application) -> dict[str, Any] | None:
        new_manifest = build_manifest(current.wire)
        check_deliverable(new_manifest)
        read_application(new_manifest, f"Application {current.name}")  # refuse an invalid manifest
        patch_body: dict[str, Any] = merge_patch.diff(dict(current.wire), dict(new_manifest))
        has_changed[0] = bool(patch_body)
        return patch_body or None

    updated = await service.patch_application(app, build_patch)
    if has_changed[0]:
        await _record_event(service, updated, EventReason.RESOURCE_UPDATED, "updated application")
    return updated, has_changed[0]


async def _record_event(service: ApplicationService, app: Application, reason: EventReason, action: str) -> None:
    user = await service.find_user()
    await service.record_event(
        build_event(app, reason, f"{user or UNKNOWN_USER} {action}", timestamp=current_timestamp(), username=user)
    )
