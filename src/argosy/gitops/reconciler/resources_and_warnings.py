"""Builds the parts of an AppState that users see: resources, shared resources and warnings.

In: a comparison with health, the live objects. Out: entries of status.resources, messages, conditions. Never: compares
or assesses anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from argosy.gitops.application import Application
from argosy.gitops.application.step_results import AppComparison, SyncStatus
from argosy.gitops.application.sync_annotations import is_hook, is_skipped
from argosy.gitops.health.aggregate import (
    ApplicationHealth,
    ResourceWithHealth,
    find_resource_health,
    render_fault_conditions,
)
from argosy.gitops.live import read_instance_name
from argosy.gitops.reconciler.object_permission_and_deletion_check import IsAllowed
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.resources import ResourceStatus, build_resource
from argosy.kube.objects import Manifest, key_of_desired, list_desired_keys
from argosy.kube.resource_key import ResourceKey


def build_resources(
    app: Application,
    desired: Sequence[Manifest],
    comparison: AppComparison,
    assessed: Sequence[ResourceWithHealth],
    live: Mapping[ResourceKey, Manifest],
    is_allowed: IsAllowed,
) -> list[ResourceStatus]:
    assessments = {managed.key: find_resource_health(app.key, managed, uid=app.uid) for managed in assessed}
    hooks_by_key = {key_of_desired(hook)[1:]: hook for hook in comparison.hooks}

    def build_entry(
        key: ResourceKey,
        desired_manifest: Manifest | None,
        live_manifest: Manifest | None,
        status: SyncStatus | None,
        *,
        has_own_tracking: bool = True,
    ) -> ResourceStatus:
        is_unknown = comparison.status is SyncStatus.UNKNOWN or not is_allowed(key)
        return build_resource(
            key,
            desired_manifest,
            live_manifest,
            status=SyncStatus.UNKNOWN if is_unknown else status,
            assessment=assessments.get(key),
            has_own_tracking=has_own_tracking,
            hook=hooks_by_key.get(key[1:]),
            app_options=app.policy.options,
        )

    entries = [
        build_entry(pair.key, pair.desired, pair.live, SyncStatus.OUT_OF_SYNC if pair.differs else SyncStatus.SYNCED)
        for pair in comparison.pairs
    ]
    # argo: skipped objects have no sync status; neither have hooks and copies of tracked objects, while they exist
    objects = [manifest for manifest in desired if not is_hook(manifest)]
    keyed_objects = zip(list_desired_keys(objects), objects, strict=True)
    skipped_by_key = {key: manifest for key, manifest in keyed_objects if is_skipped(manifest)}
    listed_keys = {pair.key for pair in comparison.pairs} | skipped_by_key.keys()
    entries += [build_entry(key, manifest, live.get(key), None) for key, manifest in skipped_by_key.items()]
    entries += [
        build_entry(key, None, manifest, None, has_own_tracking=is_hook(manifest))
        for key, manifest in live.items()
        if key not in listed_keys
    ]
    return entries


def list_shared_resource_messages(
    app: Application, live: Mapping[ResourceKey, Manifest], instance: str, settings: ReconcilerSettings
) -> list[str]:
    """argo: the Application is named with its namespace, the other one only if that is in another namespace."""
    return [
        f"{key.kind}/{key.name} is part of applications {app.qualified_name} and {other_instance.replace('_', '/')}"
        for key, manifest in live.items()
        if (other_instance := read_instance_name(manifest, settings.tracking)) not in ("", instance)
    ]


def build_warnings(
    comparison: AppComparison, app_health: ApplicationHealth, shared_resources: Sequence[str]
) -> list[AppCondition]:
    warnings = [AppCondition(ConditionType.SHARED_RESOURCE_WARNING, text) for text in shared_resources]
    warnings += [AppCondition(ConditionType.COMPARISON_ERROR, text) for text in comparison.faults]
    # argo: a broken health check is a ComparisonError there, which stops every sync; here it is only reported.
    warnings += [AppCondition(ConditionType.UNKNOWN_ERROR, text) for text in render_fault_conditions(app_health.faults)]
    return warnings
