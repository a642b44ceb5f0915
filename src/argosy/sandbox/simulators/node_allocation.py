"""Tracks the resources that Pods have requested on each Node.

In: Pods from the cache and Pods about to be bound. Out: sums per Node. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from argosy.kube.controller import Cache
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.pod_resources import Amounts, added, taken_from
from argosy.sandbox.simulators.constants import POD
from argosy.sandbox.simulators.scheduling import needs_of

FINISHED = ("Succeeded", "Failed")


class Ledger:
    """A newly bound Pod counts before the cache shows it, so that two Pods never get the same resources."""

    def __init__(self) -> None:
        self._cache: Cache | None = None
        self._entries: dict[ResourceKey, tuple[str, Amounts]] = {}
        self._sums: dict[str, Amounts] = {}

    def open(self, cache: Cache) -> None:
        """Start counting for this cache; another cache means another cluster, so everything is counted again."""
        if self._cache is cache:
            return
        self._cache = cache
        self._entries, self._sums = {}, {}
        for pod in cache.list(POD):
            self._enter(key_of(pod), pod)

    def look(self, key: ResourceKey) -> bool:
        """Update the entry of a Pod from the cache; return True if resources became free."""
        if self._cache is None:
            return False
        return self._enter(key, self._cache.get(key))

    def take(self, key: ResourceKey, node: str, needs: Amounts) -> None:
        self.leave(key)
        self._entries[key] = (node, needs)
        self._sums[node] = added(self._sums.get(node, {}), needs)

    def leave(self, key: ResourceKey) -> bool:
        node, needs = self._entries.pop(key, ("", {}))
        if node:
            self._sums[node] = taken_from(self._sums[node], needs)
        return bool(node)

    def taken(self, node: str) -> Mapping[str, Decimal]:
        return self._sums.get(node, {})

    def _enter(self, key: ResourceKey, pod: Manifest | None) -> bool:
        node = "" if pod is None else str(pod["spec"].get("nodeName") or "")
        if pod is None or (pod.get("status") or {}).get("phase") in FINISHED:
            return self.leave(key)
        if node and self._entries.get(key, ("", {}))[0] != node:
            self.take(key, node, needs_of(pod))
        return False
