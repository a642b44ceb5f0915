"""Reads, patches and deletes single objects of an Application.

In: a reader, an Application, an object selector. Out: manifests, keys, rows of fields. Never: changes objects of
others; shows a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from argosy.errors import ClusterError, Conflict, Forbidden, PolicyError, UserError
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_patches_and_sources import read_patch
from argosy.gitops.application_client.application_service import current_timestamp
from argosy.gitops.application_client.resource_actions_and_logs import ObjectSelector, load_selected_objects
from argosy.gitops.diff import mask_secrets
from argosy.gitops.status.application_event_manifests import UNKNOWN_USER, EventReason, build_event
from argosy.kube.client import PatchKind, Propagation
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.go_format import format_value
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import SECRET


async def read_objects(reader: ApplicationReader, app: Application, choice: ObjectSelector) -> list[Manifest]:
    """argo: search the whole resource tree, not only managed objects."""
    nodes = [node for node in await reader.build_tree(app) if choice.matches(node.key)]
    manifests = [manifest for node in nodes if (manifest := reader.cache.get(node.key)) is not None]
    return [
        masked_manifest
        for masked_manifest in mask_secrets(manifests, reader.reconciler_settings.diff.masked_annotations)
        if masked_manifest is not None
    ]


async def select_objects_to_change(
    reader: ApplicationReader, app: Application, choice: ObjectSelector, *, on_all: bool
) -> list[Manifest]:
    """argo: return one object, or several if `on_all`."""
    manifests = await load_selected_objects(reader, app, choice)
    if not manifests:
        raise UserError(f"no matching resource found; list them: argosy app resources {app.name}")
    if len(manifests) > 1 and not on_all:
        names = ", ".join(f"{manifest['kind']}/{manifest['metadata']['name']}" for manifest in manifests)
        raise UserError(f"multiple resources match: {names}; choose one with --resource-name, or add --all")
    return manifests


async def patch_object(
    reader: ApplicationReader, app: Application, manifest: Manifest, text: str, patch_type: str
) -> None:
    try:
        patch_kind = PatchKind(patch_type)
    except ValueError:
        choices = ", ".join(choice.value for choice in PatchKind)
        raise UserError(f"unknown patch type {patch_type!r}; choose one of {choices}", where="--patch-type") from None
    key = key_of(manifest)
    try:
        await reader.cluster.patch(key, read_patch(text), kind_of_patch=patch_kind)
    except (Conflict, Forbidden):
        raise
    except (UserError, ClusterError):
        if key.group_kind != SECRET:
            raise
        advice = "the cause is not shown, because it may quote the Secret; correct the patch"
        raise UserError(f"failed to patch Secret {key.namespace}/{key.name}: {advice}") from None
    await _record_event(reader, app, EventReason.RESOURCE_UPDATED, f"patched resource {_format_name(key_of(manifest))}")


async def delete_object(
    reader: ApplicationReader, app: Application, manifest: Manifest, *, orphan: bool, force: bool
) -> None:
    propagation = Propagation.ORPHAN if orphan else Propagation.BACKGROUND if force else Propagation.FOREGROUND
    uid = manifest["metadata"].get("uid")
    await reader.cluster.delete(key_of(manifest), propagation=propagation, uid=uid, grace=0 if force else None)
    await _record_event(reader, app, EventReason.RESOURCE_DELETED, f"deleted resource {_format_name(key_of(manifest))}")


async def _record_event(reader: ApplicationReader, app: Application, reason: EventReason, action: str) -> None:
    user = await reader.service.find_user()
    await reader.service.record_event(
        build_event(app, reason, f"{user or UNKNOWN_USER} {action}", timestamp=current_timestamp(), username=user)
    )


def _format_name(key: ResourceKey) -> str:
    return f"{key.kind}/{key.name}"


def check_app_in_project(app: Application, project: str) -> None:
    if project and project != app.project:
        raise PolicyError(f"{app.name} is in project {app.project!r}, not {project!r}; omit --project")


# -- fields --------------------------------------------------------------------------------------------------------


def pick_fields(manifest: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Keep only these fields, given as dotted paths; lists are filtered per item."""
    picked_fields: dict[str, Any] = {}
    for path in fields:
        picked_fields = _merge_picked(picked_fields, _pick(manifest, path.split(".")))
    return picked_fields


def _pick(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return value
    if isinstance(value, list):
        return [picked_value for item in value if (picked_value := _pick(item, path)) is not None] or None
    if not isinstance(value, Mapping) or path[0] not in value:
        return None
    child = _pick(value[path[0]], path[1:])
    return None if child is None else {path[0]: child}


def _merge_picked(left_value: Any, right_value: Any) -> Any:
    if isinstance(left_value, dict) and isinstance(right_value, dict):
        return {
            **left_value,
            **{name: _merge_picked(left_value.get(name), value) for name, value in right_value.items()},
        }
    if isinstance(left_value, list) and isinstance(right_value, list) and len(left_value) == len(right_value):
        return [_merge_picked(left, right) for left, right in zip(left_value, right_value, strict=True)]
    return left_value if right_value is None else right_value


def flatten_fields(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """argo: yield every value with its path, such as `spec.ports[0].port`."""
    if isinstance(value, Mapping):
        for name in sorted(value):
            yield from flatten_fields(value[name], f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            item_path = f"{path}[{index}]"
            yield from (
                flatten_fields(item, item_path) if isinstance(item, Mapping) else [(item_path, format_value(item))]
            )
    else:
        yield path, format_value(value)
