"""Limits the number of concurrent reconciles per cluster, so that an unresponsive cluster does not block all workers.

In: clusters, keys that request a slot with their projects, the number of workers of one project. Out: True if a key
gets a slot; waiting keys are notified when a slot is free. Never: waits; leaves a slot free while a key waits for it;
lets one project hold all slots of a cluster that another project needs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from argosy.fair_share import Shares
from argosy.kube.names import ResourceKey


@dataclass(frozen=True, slots=True)
class _Stay:
    """A slot that one project has held since a time."""

    project: str
    since: float


@dataclass(eq=False)
class _Room:
    is_slow: Callable[[], bool]
    shares: Shares
    inside: dict[ResourceKey, _Stay] = field(default_factory=dict)
    called: dict[ResourceKey, _Stay] = field(default_factory=dict)  # notified keys, each with a reserved slot
    waiting: dict[str, dict[ResourceKey, None]] = field(default_factory=dict)  # by project, in order of arrival

    @property
    def taken(self) -> int:
        return len(self.inside) + len(self.called)

    def forget_waiting(self, key: ResourceKey) -> None:
        for project in [project for project, line in self.waiting.items() if key in line]:
            del self.waiting[project][key]
            if not self.waiting[project]:
                del self.waiting[project]


class Admission:
    """Slots in clusters, shared fairly by project.

    One project has at most half of its workers in one cluster, and three quarters in all clusters. The same number of
    slots is reserved for projects that have none in the cluster, so that none waits for another's reconcile to end.
    """

    def __init__(
        self, workers: int, call: Callable[[ResourceKey], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._all = max(1, workers // 2), max(1, workers - workers // 4)
        self._call, self._clock = call, clock
        self._rooms: dict[str, _Room] = {}
        self._called: dict[ResourceKey, _Room] = {}

    def open(self, place: str, is_slow: Callable[[], bool]) -> None:
        """Add a cluster. While it is slow it has one slot, and one reserved for a project that has none there."""
        self._rooms[place] = _Room(is_slow, Shares(self._most, reserve=self._most, clock=self._clock))

    def close(self, place: str) -> None:
        """Remove a cluster and notify all waiting keys, so that they notice the removal."""
        room = self._rooms.pop(place)
        for key in [key for line in room.waiting.values() for key in line]:
            self._call(key)
        self._fill()

    def enter(self, place: str, key: ResourceKey, project: str = "") -> bool:
        """Return False if no slot is free; the key is notified when one is. A slot is returned by `release`."""
        room = self._rooms[place]
        if self._called.get(key) is room:
            self._forget(key)
        room.forget_waiting(key)
        self._fit(room)
        if not room.shares.has_slot(project):
            room.waiting.setdefault(project, {})[key] = None
            return False
        room.shares.start(project)
        room.inside[key] = _Stay(project, self._clock())
        return True

    def leave(self, place: str, key: ResourceKey) -> None:
        room = self._rooms.get(place)
        if room is not None and (stay := room.inside.pop(key, None)) is not None:
            room.shares.finish(stay.project, self._clock() - stay.since)
        self._fill()

    def is_inside(self, key: ResourceKey) -> bool:
        return any(key in room.inside for room in self._rooms.values())

    def ended(self, key: ResourceKey) -> None:
        """End the turn of a key. If it has an unused reservation, because it was deleted or moved, notify the next."""
        if key in self._called:
            self._forget(key)
            self._fill()

    def _forget(self, key: ResourceKey) -> None:
        """Return the slot that is reserved for a notified key."""
        room = self._called.pop(key)
        stay = room.called.pop(key)
        room.shares.finish(stay.project, 0.0)

    def _fit(self, room: _Room) -> None:
        """Set the number of slots of a cluster, given the slots in use in the other clusters.

        An empty cluster always has one slot. Only active keys count against the reserve: one project may be notified
        for more clusters than it has workers.
        """
        own, rooms = room.taken, self._rooms.values()
        slots = 1 if room.is_slow() else self._most
        left = max(0, self._all - sum(other.taken for other in rooms))
        left_for_new = max(0, 2 * self._all - sum(len(other.inside) for other in rooms))
        room.shares.resize(min(slots, own + left), max(1, min(2 * slots, own + left_for_new)))

    def _fill(self) -> None:
        while self._call_next():
            pass

    def _call_next(self) -> bool:
        """Notify one key of the cluster with the fewest slots in use; empty clusters last: their slot is not shared."""
        for room in sorted(self._rooms.values(), key=lambda room: (room.taken == 0, room.taken)):
            self._fit(room)
            if not room.waiting or (project := room.shares.choose(room.waiting)) is None:
                continue
            key = next(iter(room.waiting[project]))
            room.forget_waiting(key)
            room.shares.start(project)
            room.called[key], self._called[key] = _Stay(project, self._clock()), room
            self._call(key)
            return True
        return False
