"""Who works in which place, where a place that does not answer must not keep all workers.

In: places, keys that want in, how many workers there are. Out: whether one may come in; others are called as there is
room. Never: waits; calls nobody while there is room and somebody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from argosy.model.names import ResourceKey


@dataclass(eq=False)
class _Room:
    is_slow: Callable[[], bool]
    inside: set[ResourceKey] = field(default_factory=set)
    called: set[ResourceKey] = field(default_factory=set)  # a place is kept for each
    waiting: dict[ResourceKey, None] = field(default_factory=dict)  # in the order in which they came

    @property
    def taken(self) -> int:
        return len(self.inside | self.called)


class Admission:
    """One place has at most half of the workers, and all together leave some to whoever needs no place."""

    def __init__(self, workers: int, call: Callable[[ResourceKey], None]) -> None:
        self._most, self._all = max(1, workers // 2), max(1, workers - workers // 4)
        self._call = call
        self._rooms: dict[str, _Room] = {}
        self._called: dict[ResourceKey, _Room] = {}

    def open(self, place: str, is_slow: Callable[[], bool]) -> None:
        """In one that is slow there is room for one alone."""
        self._rooms[place] = _Room(is_slow)

    def close(self, place: str) -> None:
        """Whoever waits for it is told so."""
        for key in self._rooms.pop(place).waiting:
            self._call(key)
        self._fill()

    def enter(self, place: str, key: ResourceKey) -> bool:
        """False: there is no room; it is called when there is. Who may come in says when it leaves."""
        room = self._rooms[place]
        if self._called.get(key) is room:
            self._forget(key)
        if self._free(room) <= 0:
            room.waiting[key] = None
            return False
        room.waiting.pop(key, None)
        room.inside.add(key)
        return True

    def leave(self, place: str, key: ResourceKey) -> None:
        if (room := self._rooms.get(place)) is not None:
            room.inside.discard(key)
        self._fill()

    def is_inside(self, key: ResourceKey) -> bool:
        return any(key in room.inside for room in self._rooms.values())

    def ended(self, key: ResourceKey) -> None:
        """Its turn is over. If it was called and did not come, being gone or another's by now, the next one is."""
        if key in self._called:
            self._forget(key)
            self._fill()

    def _forget(self, key: ResourceKey) -> None:
        self._called.pop(key).called.discard(key)

    def _free(self, room: _Room) -> int:
        """A place that nobody is in is open to one, whatever the others have."""
        own, all_taken = room.taken, sum(each.taken for each in self._rooms.values())
        return min((1 if room.is_slow() else self._most) - own, max(self._all - all_taken, 1 - own))

    def _fill(self) -> None:
        for room in self._rooms.values():
            while room.waiting and self._free(room) > 0:
                key = next(iter(room.waiting))
                del room.waiting[key]
                room.called.add(key)
                self._called[key] = room
                self._call(key)
