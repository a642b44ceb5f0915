"""Tracks the resources that Pods have requested on each Node.

In: Pods from the cache and Pods about to be bound. Out: sums per Node. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.pod_resources import Amounts, add_amounts, subtract_amounts
from argosy.kube.well_known_kinds import POD
from argosy.sandbox.simulators.node_selection import compute_pod_requests

FINISHED_PHASES = ("Succeeded", "Failed")


class NodeAllocations:
    """A newly bound Pod counts before the cache shows it, so that two Pods never get the same resources."""

    def __init__(self) -> None:
        self._cache: InformerCache | None = None
        self._allocations: dict[ResourceKey, tuple[str, Amounts]] = {}
        self._totals: dict[str, Amounts] = {}

    def use_cache(self, cache: InformerCache) -> None:
        """Start counting for this cache; another cache means another cluster, so everything is counted again."""
        if self._cache is cache:
            return
        self._cache = cache
        self._allocations, self._totals = {}, {}
        for pod in cache.list(POD):
            self._update_entry(key_of(pod), pod)

    def refresh(self, key: ResourceKey) -> bool:
        """Update the entry of a Pod from the cache; return True if resources became free."""
        if self._cache is None:
            return False
        return self._update_entry(key, self._cache.get(key))

    def allocate(self, key: ResourceKey, node: str, requests: Amounts) -> None:
        self.release(key)
        self._allocations[key] = (node, requests)
        self._totals[node] = add_amounts(self._totals.get(node, {}), requests)

    def release(self, key: ResourceKey) -> bool:
        node, requests = self._allocations.pop(key, ("", {}))
        if node:
            self._totals[node] = subtract_amounts(self._totals[node], requests)
        return bool(node)

    def get_allocated(self, node: str) -> Mapping[str, Decimal]:
        return self._totals.get(node, {})

    def _update_entry(self, key: ResourceKey, pod: Manifest | None) -> bool:
        node = "" if pod is None else str(pod["spec"].get("nodeName") or "")
        if pod is None or (pod.get("status") or {}).get("phase") in FINISHED_PHASES:
            return self.release(key)
        if node and self._allocations.get(key, ("", {}))[0] != node:
            self.allocate(key, node, compute_pod_requests(pod))
        return False
