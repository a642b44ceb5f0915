"""Who works in which place, where a place that does not answer must not keep all workers.

In: places, keys that want in with their projects, how many workers one project has. Out: whether one may come in;
others are called as there is room. Never: waits; calls nobody while there is room and somebody waits for it; lets one
project hold a place that another wants to work in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from argosy.fair_share import Shares
from argosy.kube.names import ResourceKey


@dataclass(frozen=True, slots=True)
class _Stay:
    """A slot that one project holds in a room since a time."""

    project: str
    since: float


@dataclass(eq=False)
class _Room:
    is_slow: Callable[[], bool]
    shares: Shares
    inside: dict[ResourceKey, _Stay] = field(default_factory=dict)
    called: dict[ResourceKey, _Stay] = field(default_factory=dict)  # a slot is kept for each
    waiting: dict[str, dict[ResourceKey, None]] = field(default_factory=dict)  # by project, in the order of arrival

    @property
    def taken(self) -> int:
        return len(self.inside) + len(self.called)

    def forget_waiting(self, key: ResourceKey) -> None:
        for project in [project for project, line in self.waiting.items() if key in line]:
            del self.waiting[project][key]
            if not self.waiting[project]:
                del self.waiting[project]


class Admission:
    """Slots in places, shared fairly by project.

    One project has at most half of its workers in one place, and three quarters in all places. As many slots again are
    in reserve for projects that have none in the place, so that none waits for another's pass to end.
    """

    def __init__(
        self, workers: int, call: Callable[[ResourceKey], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._all = max(1, workers // 2), max(1, workers - workers // 4)
        self._call, self._clock = call, clock
        self._rooms: dict[str, _Room] = {}
        self._called: dict[ResourceKey, _Room] = {}

    def open(self, place: str, is_slow: Callable[[], bool]) -> None:
        """In one that is slow there is one slot, and one in reserve for a project that has none there."""
        self._rooms[place] = _Room(is_slow, Shares(self._most, reserve=self._most, clock=self._clock))

    def close(self, place: str) -> None:
        """Call all that wait for it, so that they learn of its end."""
        room = self._rooms.pop(place)
        for key in [key for line in room.waiting.values() for key in line]:
            self._call(key)
        self._fill()

    def enter(self, place: str, key: ResourceKey, project: str = "") -> bool:
        """False: there is no room; it is called when there is. A key that came in leaves by `leave`."""
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
        """Its turn is over. If it was called and did not come, being gone or another's by now, the next one is."""
        if key in self._called:
            self._forget(key)
            self._fill()

    def _forget(self, key: ResourceKey) -> None:
        """Give back the slot that was kept for a key that was called."""
        room = self._called.pop(key)
        stay = room.called.pop(key)
        room.shares.finish(stay.project, 0.0)

    def _fit(self, room: _Room) -> None:
        """Set how many slots the room has beside what the other rooms have taken.

        A room that is empty is open to one, whatever the others have. Only keys inside count against the reserve: one
        project may be called to more rooms than it has workers.
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
        """Call one key: into the room with the fewest inside. An empty one comes last, since its slot is not shared."""
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
