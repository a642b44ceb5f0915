"""The newest events in memory, one log for each bucket.

In: committed events. Out: the events that a watch has not delivered yet. Never: grows past its bounds; the oldest
events are dropped first, and `BucketEventLog.floor` is the newest revision that was dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from argosy.sandbox.store.entries import Event

MOST_EVENTS = 8_192
MOST_BYTES = 8 * 1024 * 1024


class Log:
    """Every event of one bucket whose revision is above `floor`."""

    __slots__ = ("events", "floor", "waiters")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.events: deque[Event] = deque()
        self.waiters: set[asyncio.Future[bool]] = set()

    def after(self, revision: int) -> list[Event]:
        """Events after `revision`, oldest first. Searches from the newest, because most watches are nearly current."""
        events: list[Event] = []
        for event in reversed(self.events):
            if event.revision <= revision:
                break
            events.append(event)
        events.reverse()
        return events

    def drop_oldest(self) -> Event:
        event = self.events.popleft()
        self.floor = event.revision
        return event

    def wake(self) -> None:
        waiters, self.waiters = self.waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)


class Window:
    def __init__(self, floor: int) -> None:
        self._opened_at = floor
        self._logs: dict[str, Log] = {}
        self._order: deque[Log] = deque()
        self._bytes = 0
        self.floor = floor

    def log(self, bucket: str) -> Log:
        """The log of a bucket. A new log starts at the opening revision, because the bucket had no event since then."""
        log = self._logs.get(bucket)
        if log is None:
            log = self._logs[bucket] = Log(self._opened_at)
        return log

    def logs(self) -> Iterable[Log]:
        return self._logs.values()

    def append(self, event: Event) -> Log:
        log = self.log(event.bucket)
        log.events.append(event)
        self._order.append(log)
        self._bytes += _weight(event)
        while len(self._order) > MOST_EVENTS or (self._bytes > MOST_BYTES and len(self._order) > 1):
            self._drop_oldest()
        return log

    def drop(self, revision: int) -> None:
        """Drop every event up to and including `revision`."""
        while self._order and self._order[0].events[0].revision <= revision:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        event = self._order.popleft().drop_oldest()
        self._bytes -= _weight(event)
        self.floor = event.revision


def _weight(event: Event) -> int:
    return len(event.body) + len(event.previous or b"")
