"""Simulates the ResourceQuota controller: computes how much of a quota is used. The API server enforces the limit.

In: the key of a ResourceQuota. Out: its status. Never: rejects a request.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.pod_resources import ZERO_AMOUNT, Amounts, add_amounts
from argosy.kube.schema.resource_quota import count_usage, format_amount, quota_matches
from argosy.kube.well_known_kinds import PERSISTENT_VOLUME_CLAIM, POD, RESOURCE_QUOTA, SERVICE
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.owner_references_and_marks import (
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.reconcile_throttle import ReconcileThrottle

WATCHED_PLURALS: Final = {POD: "pods", PERSISTENT_VOLUME_CLAIM: "persistentvolumeclaims", SERVICE: "services"}
POLLED_RESOURCES: Final = ("configmaps", "secrets", "replicationcontrollers", "resourcequotas")
POLL_INTERVAL_SECONDS: Final = 5.0  # for kinds that are not watched


class ResourceQuotaController:
    name = "simulated-quotas"

    def __init__(self) -> None:
        self._cache: InformerCache | None = None
        self._throttle = ReconcileThrottle(0.2, 0.002)
        self.watches = (
            Watch(RESOURCE_QUOTA, enqueue_if_unmarked),
            *(Watch(kind, self._enqueue_quotas_of_namespace) for kind in WATCHED_PLURALS),
        )

    def _enqueue_quotas_of_namespace(self, manifest: Manifest) -> Iterable[ResourceKey]:
        if self._cache is not None:
            for quota in self._cache.list(RESOURCE_QUOTA, namespace=manifest["metadata"]["namespace"]):
                yield key_of(quota)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._cache = context.cache
        quota = context.cache.get(key)
        if quota is None or is_being_deleted(quota) or is_simulated_by_other_addon(quota):
            self._throttle.forget(key)
            return None
        if (pause := self._throttle.compute_wait(key, context.clock)) > 0:
            return Requeue(pause)
        hard = (quota.get("spec") or {}).get("hard") or {}
        polled_resources = [
            resource for resource in hard if resource in POLLED_RESOURCES or resource.startswith("count/")
        ]
        total = add_amounts(
            _sum_watched_usage(quota, context.cache), await _count_polled_usage(quota, polled_resources, context)
        )
        used = {name: format_amount(total.get(name, ZERO_AMOUNT), limit) for name, limit in hard.items()}
        status: dict[str, Any] = {"hard": hard, "used": used}
        if await update_status_if_changed(quota, _add_nulls_for_removed_names(quota, status), context.cluster):
            self._throttle.record_reconcile(key, len(context.cache.list(POD, namespace=key.namespace)), context.clock)
        return Requeue(POLL_INTERVAL_SECONDS) if polled_resources else None


def _sum_watched_usage(quota: Manifest, cache: InformerCache) -> Amounts:
    total: Amounts = {}
    for kind, plural in WATCHED_PLURALS.items():
        for manifest in cache.list(kind, namespace=quota["metadata"]["namespace"]):
            if quota_matches(quota, plural, manifest):
                total = add_amounts(total, count_usage("", plural, manifest))
    return total


async def _count_polled_usage(quota: Manifest, names: Iterable[str], context: ControllerContext) -> Amounts:
    """Count objects of kinds that are not watched."""
    total: Amounts = {}
    kinds: dict[tuple[str, str], GroupKind] = {}
    for name in names:
        plural, _, group = name.removeprefix("count/").partition(".")
        if not group and plural in WATCHED_PLURALS.values():
            continue
        kinds = kinds or {
            (group_kind.group, info.plural): group_kind for group_kind, info in (await context.cluster.kinds()).items()
        }
        if kind := kinds.get((group, plural)):
            listing = await context.cluster.list(kind, namespace=quota["metadata"]["namespace"], metadata_only=True)
            total[name] = ZERO_AMOUNT + len(listing.items)
    return total


def _add_nulls_for_removed_names(quota: Manifest, status: dict[str, Any]) -> dict[str, Any]:
    """Add null values for names that the quota no longer has, because a merge patch keeps them otherwise."""
    previous = quota.get("status") or {}
    return {field: {**dict.fromkeys(previous.get(field) or {}), **values} for field, values in status.items()}
