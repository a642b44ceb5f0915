"""Simulates the PodDisruptionBudget controller: computes how many Pods may be evicted now. The API server enforces it.

In: the key of a budget. Out: its status. Never: evicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey, split_api_version
from argosy.kube.schema import selectors
from argosy.kube.well_known_kinds import POD
from argosy.sandbox.simulators.conditional_writes import requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.deployment_rolling_update_counts import resolve_int_or_percent
from argosy.sandbox.simulators.owner_references_and_marks import (
    POD_DISRUPTION_BUDGET,
    append_simulated_note,
    enqueue_if_unmarked,
    find_controller_reference,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_counts import is_active, is_ready
from argosy.sandbox.simulators.reconcile_throttle import ReconcileThrottle

DISRUPTION_ALLOWED: Final = ("True", "SufficientPods", "more Pods are healthy than the budget requires")
DISRUPTION_NOT_ALLOWED: Final = ("False", "InsufficientPods", "no Pod can be evicted without violating the budget")


class PodDisruptionBudgetController:
    name = "simulated-disruptionbudgets"

    def __init__(self) -> None:
        self._cache: InformerCache | None = None
        self._throttle = ReconcileThrottle(0.2, 0.002)
        self.watches = (Watch(POD_DISRUPTION_BUDGET, enqueue_if_unmarked), Watch(POD, self._enqueue_budgets_of_pod))

    def _enqueue_budgets_of_pod(self, pod: Manifest) -> Iterable[ResourceKey]:
        if self._cache is not None:
            for budget in self._cache.list(POD_DISRUPTION_BUDGET, namespace=pod["metadata"]["namespace"]):
                if _selects(budget, pod):
                    yield key_of(budget)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._cache = context.cache
        budget = context.cache.get(key)
        if budget is None or is_being_deleted(budget) or is_simulated_by_other_addon(budget):
            self._throttle.forget(key)
            return None
        if (pause := self._throttle.compute_wait(key, context.clock)) > 0:
            return Requeue(pause)
        pods = context.cache.list(POD, namespace=key.namespace)
        active = [pod for pod in pods if is_active(pod) and _selects(budget, pod)]
        status = build_budget_status(
            budget, active, count_expected_pods(active, context.cache), format_timestamp(context.clock.now())
        )
        if await update_status_if_changed(budget, status, context.cluster):
            self._throttle.record_reconcile(key, len(active), context.clock)
        return None


def build_budget_status(budget: Manifest, pods: Sequence[Manifest], expected_pods: int, now: str) -> dict[str, Any]:
    spec = budget.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        needed = max(expected_pods - resolve_int_or_percent(spec["maxUnavailable"], expected_pods, round_up=True), 0)
    else:
        needed = resolve_int_or_percent(spec.get("minAvailable", 1), expected_pods, round_up=True)
    healthy = sum(map(is_ready, pods))
    allowed = max(healthy - needed, 0) if pods else 0
    status, reason, message = DISRUPTION_ALLOWED if allowed else DISRUPTION_NOT_ALLOWED
    previous: Manifest = next(iter((budget.get("status") or {}).get("conditions") or ()), {})
    transitioned_at = previous.get("lastTransitionTime") if previous.get("status") == status else None
    condition = {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": reason,
        "message": append_simulated_note(message),
    }
    return {
        "expectedPods": expected_pods,
        "desiredHealthy": needed,
        "currentHealthy": healthy,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget["metadata"].get("generation", 1),
        "conditions": [{**condition, "lastTransitionTime": transitioned_at or now}],
    }


def count_expected_pods(pods: Sequence[Manifest], cache: InformerCache) -> int:
    """k8s: the replica counts that the owners want, not the number of existing Pods."""
    total, owner_keys = 0, {}
    for pod in pods:
        reference = find_controller_reference(pod)
        if reference is None:
            total += 1
        else:
            group, _ = split_api_version(reference["apiVersion"])
            owner_keys[ResourceKey(group, reference["kind"], pod["metadata"]["namespace"], reference["name"])] = pod
    for key in owner_keys:
        owner = cache.get(key)
        owner_replicas = (owner.get("spec") or {}).get("replicas") if owner is not None else None
        owned_count = sum(1 for pod in pods if (find_controller_reference(pod) or {}).get("name") == key.name)
        total += owned_count if owner_replicas is None else int(owner_replicas)
    return total


def _selects(budget: Manifest, pod: Manifest) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False  # k8s: a missing selector matches nothing, an empty one matches everything
    return bool(selectors.label_selector_from_wire(selector).matches(pod["metadata"].get("labels")))
