"""Limits the number of concurrent reconciles per cluster, so that an unresponsive cluster does not block all workers.

In: clusters, keys that request a slot with their projects, the number of workers of one project. Out: True if a key
gets a slot; waiting keys are notified when a slot is free. Never: waits; leaves a slot free while a key waits for it;
lets one project hold all slots of a cluster that another project needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from argosy.fair_share import FairShareScheduler
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True, slots=True)
class _HeldSlot:
    """A slot that one project has held since a time."""

    project: str
    held_since: float


@dataclass(eq=False)
class _ClusterSlots:
    is_slow: Callable[[], bool]
    scheduler: FairShareScheduler
    active: dict[ResourceKey, _HeldSlot] = field(default_factory=dict)
    reserved: dict[ResourceKey, _HeldSlot] = field(default_factory=dict)  # notified keys, each with a reserved slot
    waiting: dict[str, dict[ResourceKey, None]] = field(default_factory=dict)  # by project, in order of arrival

    @property
    def slots_in_use(self) -> int:
        return len(self.active) + len(self.reserved)

    def remove_waiting(self, key: ResourceKey) -> None:
        for project in [project for project, keys in self.waiting.items() if key in keys]:
            del self.waiting[project][key]
            if not self.waiting[project]:
                del self.waiting[project]


class ClusterConcurrencyLimiter:
    """Slots in clusters, shared fairly by project.

    One project has at most half of its workers in one cluster, and three quarters in all clusters. The same number of
    slots is reserved for projects that have none in the cluster, so that none waits for another's reconcile to end.
    """

    def __init__(
        self, workers: int, notify: Callable[[ResourceKey], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_per_cluster, self._max_total = max(1, workers // 2), max(1, workers - workers // 4)
        self._notify, self._clock = notify, clock
        self._clusters: dict[str, _ClusterSlots] = {}
        self._reservations: dict[ResourceKey, _ClusterSlots] = {}

    def add_cluster(self, cluster: str, is_slow: Callable[[], bool]) -> None:
        """Add a cluster. While it is slow it has one slot, and one reserved for a project that has none there."""
        self._clusters[cluster] = _ClusterSlots(
            is_slow, FairShareScheduler(self._max_per_cluster, reserve=self._max_per_cluster, clock=self._clock)
        )

    def remove_cluster(self, cluster: str) -> None:
        """Remove a cluster and notify all waiting keys, so that they notice the removal."""
        slots = self._clusters.pop(cluster)
        for key in [key for keys in slots.waiting.values() for key in keys]:
            self._notify(key)
        self._notify_waiting()

    def try_acquire(self, cluster: str, key: ResourceKey, project: str = "") -> bool:
        """Return False if no slot is free; the key is notified when one is. A slot is returned by `release`."""
        slots = self._clusters[cluster]
        if self._reservations.get(key) is slots:
            self._release_reservation(key)
        slots.remove_waiting(key)
        self._resize(slots)
        if not slots.scheduler.has_slot(project):
            slots.waiting.setdefault(project, {})[key] = None
            return False
        slots.scheduler.start_turn(project)
        slots.active[key] = _HeldSlot(project, self._clock())
        return True

    def release(self, cluster: str, key: ResourceKey) -> None:
        slots = self._clusters.get(cluster)
        if slots is not None and (held_slot := slots.active.pop(key, None)) is not None:
            slots.scheduler.finish_turn(held_slot.project, self._clock() - held_slot.held_since)
        self._notify_waiting()

    def has_slot(self, key: ResourceKey) -> bool:
        return any(key in slots.active for slots in self._clusters.values())

    def drop_reservation(self, key: ResourceKey) -> None:
        """End the turn of a key. If it has an unused reservation, because it was deleted or moved, notify the next."""
        if key in self._reservations:
            self._release_reservation(key)
            self._notify_waiting()

    def _release_reservation(self, key: ResourceKey) -> None:
        """Return the slot that is reserved for a notified key."""
        slots = self._reservations.pop(key)
        held_slot = slots.reserved.pop(key)
        slots.scheduler.finish_turn(held_slot.project, 0.0)

    def _resize(self, cluster: _ClusterSlots) -> None:
        """Set the number of slots of a cluster, given the slots in use in the other clusters.

        An empty cluster always has one slot. Only active keys count against the reserve: one project may be notified
        for more clusters than it has workers.
        """
        own_slots, clusters = cluster.slots_in_use, self._clusters.values()
        slots = 1 if cluster.is_slow() else self._max_per_cluster
        left = max(0, self._max_total - sum(other.slots_in_use for other in clusters))
        left_for_new = max(0, 2 * self._max_total - sum(len(other.active) for other in clusters))
        cluster.scheduler.resize(min(slots, own_slots + left), max(1, min(2 * slots, own_slots + left_for_new)))

    def _notify_waiting(self) -> None:
        while self._notify_next():
            pass

    def _notify_next(self) -> bool:
        """Notify one key of the cluster with the fewest slots in use; empty clusters last: their slot is not shared."""
        for cluster in sorted(
            self._clusters.values(), key=lambda cluster: (cluster.slots_in_use == 0, cluster.slots_in_use)
        ):
            self._resize(cluster)
            if not cluster.waiting or (project := cluster.scheduler.choose_next(cluster.waiting)) is None:
                continue
            key = next(iter(cluster.waiting[project]))
            cluster.remove_waiting(key)
            cluster.scheduler.start_turn(project)
            cluster.reserved[key], self._reservations[key] = _HeldSlot(project, self._clock()), cluster
            self._notify(key)
            return True
        return False
