"""The newest events in memory, one log for each bucket.

In: committed events. Out: the events that a watch has not delivered yet. Never: grows past its bounds; the oldest
events are dropped first, and `BucketEventLog.floor` is the newest revision that was dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

from argosy.sandbox.store.entries_and_events import StoreEvent

MAX_WINDOW_EVENTS = 8_192
MAX_WINDOW_BYTES = 8 * 1024 * 1024


class BucketEventLog:
    """Every event of one bucket whose revision is above `floor`."""

    __slots__ = ("events", "floor", "waiters")

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.events: deque[StoreEvent] = deque()
        self.waiters: set[asyncio.Future[bool]] = set()

    def list_events_after(self, revision: int) -> list[StoreEvent]:
        """Events after `revision`, oldest first. Searches from the newest, because most watches are nearly current."""
        events: list[StoreEvent] = []
        for event in reversed(self.events):
            if event.revision <= revision:
                break
            events.append(event)
        events.reverse()
        return events

    def drop_oldest(self) -> StoreEvent:
        event = self.events.popleft()
        self.floor = event.revision
        return event

    def wake_waiters(self) -> None:
        waiters, self.waiters = self.waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)


class EventWindow:
    def __init__(self, floor: int) -> None:
        self._opening_revision = floor
        self._logs: dict[str, BucketEventLog] = {}
        self._logs_in_event_order: deque[BucketEventLog] = deque()
        self._bytes = 0
        self.floor = floor

    def get_log(self, bucket: str) -> BucketEventLog:
        """The log of a bucket. A new log starts at the opening revision, because the bucket had no event since then."""
        log = self._logs.get(bucket)
        if log is None:
            log = self._logs[bucket] = BucketEventLog(self._opening_revision)
        return log

    def list_logs(self) -> Iterable[BucketEventLog]:
        return self._logs.values()

    def append(self, event: StoreEvent) -> BucketEventLog:
        log = self.get_log(event.bucket)
        log.events.append(event)
        self._logs_in_event_order.append(log)
        self._bytes += _event_bytes(event)
        while len(self._logs_in_event_order) > MAX_WINDOW_EVENTS or (
            self._bytes > MAX_WINDOW_BYTES and len(self._logs_in_event_order) > 1
        ):
            self._drop_oldest()
        return log

    def drop_events_up_to(self, revision: int) -> None:
        """Drop every event up to and including `revision`."""
        while self._logs_in_event_order and self._logs_in_event_order[0].events[0].revision <= revision:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        event = self._logs_in_event_order.popleft().drop_oldest()
        self._bytes -= _event_bytes(event)
        self.floor = event.revision


def _event_bytes(event: StoreEvent) -> int:
    return len(event.body) + len(event.previous or b"")
