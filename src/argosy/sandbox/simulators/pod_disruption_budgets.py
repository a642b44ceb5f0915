"""Simulates the PodDisruptionBudget controller: computes how many Pods may be evicted now. The API server enforces it.

In: the key of a budget. Out: its status. Never: evicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema import selectors
from argosy.sandbox.simulators.constants import (
    BUDGET,
    POD,
    is_dying,
    is_played_by_others,
    owner_of,
    told,
    unmarked,
)
from argosy.sandbox.simulators.pod_counts import is_active, is_ready
from argosy.sandbox.simulators.requeue_interval import Pace
from argosy.sandbox.simulators.rollout import share
from argosy.sandbox.simulators.timestamps import stamp
from argosy.sandbox.simulators.writes import keep_status, patient

ENOUGH: Final = ("True", "SufficientPods", "more Pods are healthy than the budget requires")
TOO_FEW: Final = ("False", "InsufficientPods", "no Pod can be evicted without violating the budget")


class Budgets:
    name = "simulated-disruptionbudgets"

    def __init__(self) -> None:
        self._cache: Cache | None = None
        self._pace = Pace(0.2, 0.002)
        self.watches = (Watch(BUDGET, unmarked), Watch(POD, self._over))

    def _over(self, pod: Manifest) -> Iterable[ResourceKey]:
        if self._cache is not None:
            for each in self._cache.list(BUDGET, namespace=pod["metadata"]["namespace"]):
                if _covers(each, pod):
                    yield key_of(each)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._cache = context.cache
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            self._pace.forget(key)
            return None
        if (pause := self._pace.wait(key, context.clock)) > 0:
            return Requeue(pause)
        pods = context.cache.list(POD, namespace=key.namespace)
        active = [each for each in pods if is_active(each) and _covers(live, each)]
        status = status_of(live, active, expected(active, context.cache), stamp(context.clock.now()))
        if await keep_status(live, status, context.cluster):
            self._pace.looked(key, len(active), context.clock)
        return None


def status_of(live: Manifest, pods: Sequence[Manifest], whole: int, now: str) -> dict[str, Any]:
    spec = live.get("spec") or {}
    if spec.get("maxUnavailable") is not None:
        needed = max(whole - share(spec["maxUnavailable"], whole, up=True), 0)
    else:
        needed = share(spec.get("minAvailable", 1), whole, up=True)
    healthy = sum(map(is_ready, pods))
    spare = max(healthy - needed, 0) if pods else 0
    is_so, reason, message = ENOUGH if spare else TOO_FEW
    known: Manifest = next(iter((live.get("status") or {}).get("conditions") or ()), {})
    since = known.get("lastTransitionTime") if known.get("status") == is_so else None
    said = {"type": "DisruptionAllowed", "status": is_so, "reason": reason, "message": told(message)}
    return {
        "expectedPods": whole,
        "desiredHealthy": needed,
        "currentHealthy": healthy,
        "disruptionsAllowed": spare,
        "observedGeneration": live["metadata"].get("generation", 1),
        "conditions": [{**said, "lastTransitionTime": since or now}],
    }


def expected(pods: Sequence[Manifest], cache: Cache) -> int:
    """k8s: the replica counts that the owners want, not the number of existing Pods."""
    total, owners = 0, {}
    for pod in pods:
        reference = owner_of(pod)
        if reference is None:
            total += 1
        else:
            group, _ = split_api_version(reference["apiVersion"])
            owners[ResourceKey(group, reference["kind"], pod["metadata"]["namespace"], reference["name"])] = pod
    for key in owners:
        found = cache.get(key)
        wanted = (found.get("spec") or {}).get("replicas") if found is not None else None
        same = sum(1 for pod in pods if (owner_of(pod) or {}).get("name") == key.name)
        total += same if wanted is None else int(wanted)
    return total


def _covers(budget: Manifest, pod: Manifest) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False  # k8s: a missing selector matches nothing, an empty one matches everything
    return bool(selectors.from_label_selector(selector).matches(pod["metadata"].get("labels")))
