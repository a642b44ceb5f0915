"""Builds the parts of an AppState that users see: resources, shared resources and warnings.

In: a comparison with health, the live objects. Out: entries of status.resources, messages, conditions. Never: compares
or assesses anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from argosy.gitops.application import Application
from argosy.gitops.application.hooks import is_hook
from argosy.gitops.application.step_results import Comparison, SyncStatus
from argosy.gitops.health.aggregate import ApplicationHealth, Managed, conditions, own_assessment
from argosy.gitops.live import owner
from argosy.gitops.reconciler.permissions import Allowed
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.gitops.status.resources import Resource, resource_of
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

_CONFIRM: Final = frozenset({"Delete=confirm", "Prune=confirm"})


def build_resources(
    app: Application,
    comparison: Comparison,
    assessed: Sequence[Managed],
    live: Mapping[ResourceKey, Manifest],
    is_allowed: Allowed,
) -> list[Resource]:
    assessments = {managed.key: own_assessment(app.key, managed, uid=app.uid) for managed in assessed}
    confirms = not _CONFIRM.isdisjoint(app.policy.options)
    entries = []
    for pair in comparison.pairs:
        status = SyncStatus.OUT_OF_SYNC if pair.differs else SyncStatus.SYNCED
        if comparison.status is SyncStatus.UNKNOWN or not is_allowed(pair.key):
            status = SyncStatus.UNKNOWN
        entries.append(
            resource_of(
                pair.key,
                pair.desired,
                pair.live,
                status=status,
                assessment=assessments.get(pair.key),
                confirms=confirms,
            )
        )
    # argo: hooks, skipped objects and copies of tracked objects are listed while they exist, without a sync status
    paired_keys = {pair.key for pair in comparison.pairs}
    entries += [
        resource_of(key, None, manifest, status=None, is_own=is_hook(manifest))
        for key, manifest in live.items()
        if key not in paired_keys
    ]
    return entries


def find_shared(live: Mapping[ResourceKey, Manifest], instance: str, settings: Rules) -> list[str]:
    return [
        f"{key.kind}/{key.name} is part of applications {instance} and {other_instance}"
        for key, manifest in live.items()
        if (other_instance := owner(manifest, settings.tracking)) not in ("", instance)
    ]


def build_warnings(
    comparison: Comparison, app_health: ApplicationHealth, shared_resources: Sequence[str]
) -> list[Condition]:
    warnings = [Condition(ConditionType.SHARED_RESOURCE_WARNING, text) for text in shared_resources]
    warnings += [Condition(ConditionType.COMPARISON_ERROR, text) for text in comparison.faults]
    # argo: a broken health check is a ComparisonError there, which stops every sync; here it is only reported.
    warnings += [Condition(ConditionType.UNKNOWN_ERROR, text) for text in conditions(app_health.faults)]
    return warnings
