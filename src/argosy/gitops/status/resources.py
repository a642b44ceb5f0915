"""Builds status.resources: the managed resources of an Application.

In: keys with manifests, sync statuses and assessments. Out: `status.resources`. Never: assesses any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.gitops.application.step_results import Assessment, SyncStatus
from argosy.gitops.application.sync_annotations import is_hook, list_sync_options, read_wave
from argosy.gitops.status.status_json_conversions import as_mappings, omit_empty
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey, split_api_version


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """One entry of status.resources."""

    key: ResourceKey
    version: str = ""
    status: SyncStatus | None = None  # None for hooks and copies of tracked objects
    assessment: Assessment | None = None
    is_hook: bool = False
    requires_pruning: bool = False
    wave: int = 0
    requires_confirmation: bool = False  # before it is deleted


def build_resource(
    key: ResourceKey,
    desired: Manifest | None,
    live: Manifest | None,
    *,
    status: SyncStatus | None,
    assessment: Assessment | None = None,
    has_own_tracking: bool = True,
    hook: Manifest | None = None,
    app_options: Iterable[str] = (),
) -> ResourceStatus:
    """Build an entry.

    `has_own_tracking` is False if the tracking mark was copied from another object. `hook` is the manifest in Git of a
    live hook. `app_options` are the sync options of the Application.
    """
    manifest = live or desired or {}
    is_hook_manifest = is_hook(manifest)
    has_status = status is SyncStatus.UNKNOWN or (has_own_tracking and not is_hook_manifest)  # argo: Unknown overrides
    wave_manifest = desired if desired is not None else hook if is_hook_manifest else None
    return ResourceStatus(
        key,
        version=split_api_version(str(manifest.get("apiVersion") or ""))[1],
        status=status if has_status else None,
        assessment=assessment,
        is_hook=is_hook_manifest,
        requires_pruning=desired is None and live is not None and has_own_tracking,  # argo: also for live hooks
        wave=read_wave(wave_manifest) if wave_manifest is not None else 0,  # argo: as in Git
        requires_confirmation=any(_requires_confirmation(side, app_options) for side in (desired, live)),
    )


def _requires_confirmation(manifest: Manifest | None, app_options: Iterable[str]) -> bool:
    """argo: For deletion and for pruning, the option of the manifest overrides the one of the Application."""
    if manifest is None:
        return False
    values_by_name = dict(option.partition("=")[::2] for option in (*app_options, *list_sync_options(manifest)))
    return "confirm" in (values_by_name.get("Delete"), values_by_name.get("Prune"))


def resources_to_wire(resources: Iterable[ResourceStatus], *, with_health: bool) -> list[dict[str, Any]]:
    """argo: health is written only if the installation enables it."""
    return [
        _resource_to_wire(resource, with_health=with_health)
        for resource in sorted(resources, key=lambda resource: resource.key)
    ]


def list_resource_keys(status: Mapping[str, Any]) -> list[ResourceKey]:
    """Return the keys of `status.resources`."""
    parts = ("group", "kind", "namespace", "name")
    return [
        ResourceKey(*(str(entry.get(part) or "") for part in parts)) for entry in as_mappings(status.get("resources"))
    ]


def _resource_to_wire(resource: ResourceStatus, *, with_health: bool) -> dict[str, Any]:
    key, assessment = resource.key, resource.assessment if with_health else None
    return omit_empty(
        group=key.group,
        version=resource.version,
        kind=key.kind,
        namespace=key.namespace,
        name=key.name,
        status=resource.status and resource.status.value,
        health=omit_empty(status=assessment.health.value, message=assessment.message)
        if assessment and assessment.health
        else None,
        hook=resource.is_hook,
        requiresPruning=resource.requires_pruning,
        syncWave=resource.wave,
        requiresDeletionConfirmation=resource.requires_confirmation,
    )
