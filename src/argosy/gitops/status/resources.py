"""Builds status.resources: the managed resources of an Application.

In: keys with manifests, sync statuses and assessments. Out: `status.resources`. Never: assesses any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.gitops.application.hooks import is_hook, sync_options, wave
from argosy.gitops.application.step_results import Assessment, SyncStatus
from argosy.gitops.status.wire_format import given, mappings
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest

_CONFIRM: Final = frozenset({"Delete=confirm", "Prune=confirm"})


@dataclass(frozen=True, slots=True)
class Resource:
    """One entry of status.resources."""

    key: ResourceKey
    version: str = ""
    status: SyncStatus | None = None  # None for hooks and copies of tracked objects
    assessment: Assessment | None = None
    is_hook: bool = False
    requires_pruning: bool = False
    wave: int = 0
    requires_confirmation: bool = False  # before it is deleted


def resource_of(
    key: ResourceKey,
    desired: Manifest | None,
    live: Manifest | None,
    *,
    status: SyncStatus | None,
    assessment: Assessment | None = None,
    is_own: bool = True,
    confirms: bool = False,
) -> Resource:
    """Build an entry. `has_own_tracking`: its tracking mark names itself and is no copy."""
    shown = live or desired or {}
    runs = is_hook(shown)
    # argo: the wave of the desired manifest; extra objects have none, except hooks
    counted = desired if desired is not None else shown if runs else None
    return Resource(
        key,
        version=split_api_version(str(shown.get("apiVersion") or ""))[1],
        status=status if is_own and not runs else None,
        assessment=assessment,
        is_hook=runs,
        requires_pruning=desired is None and live is not None and is_own,  # argo: also for live hooks
        wave=wave(counted) if counted is not None else 0,
        requires_confirmation=confirms or _confirms(desired) or _confirms(live),
    )


def _confirms(manifest: Manifest | None) -> bool:
    return manifest is not None and not _CONFIRM.isdisjoint(sync_options(manifest))


def resources_wire(resources: Iterable[Resource], *, shows_health: bool) -> list[dict[str, Any]]:
    """argo: health is written only if the installation enables it."""
    return [_wire(each, shows_health=shows_health) for each in sorted(resources, key=lambda each: each.key)]


def told_keys(status: Mapping[str, Any]) -> list[ResourceKey]:
    """Return the keys of `status.resources`."""
    parts = ("group", "kind", "namespace", "name")
    return [ResourceKey(*(str(each.get(part) or "") for part in parts)) for each in mappings(status.get("resources"))]


def _wire(resource: Resource, *, shows_health: bool) -> dict[str, Any]:
    key, found = resource.key, resource.assessment if shows_health else None
    return given(
        group=key.group,
        version=resource.version,
        kind=key.kind,
        namespace=key.namespace,
        name=key.name,
        status=resource.status and resource.status.value,
        health=given(status=found.health.value, message=found.message) if found and found.health else None,
        hook=resource.is_hook,
        requiresPruning=resource.requires_pruning,
        syncWave=resource.wave,
        requiresDeletionConfirmation=resource.requires_confirmation,
    )
