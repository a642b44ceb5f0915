"""A watch of one bucket.

In: a revision. Out: every later event, once, in order, in batches. Never: buffers events of its own, so a slow reader
costs no memory: the watch continues from memory, else from disk, else raises Gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from argosy.sandbox.store.entries_and_events import StoreEvent
from argosy.sandbox.store.event_window import BucketEventLog
from argosy.sandbox.store.journal_protocol import StoreJournal


class BucketWatch:
    """Used by one task at a time. Cancelling `next_batch` loses no event."""

    __slots__ = ("_bucket", "_closed", "_event_log", "_get_newest_revision", "_journal", "_on_close", "_position")

    def __init__(
        self, bucket: str, event_log: BucketEventLog, journal: StoreJournal, *,
        since: int, get_newest_revision: Callable[[], int], on_close: Callable[[BucketWatch], None],
    ) -> None:  # fmt: skip
        self._bucket, self._event_log, self._journal, self._position = bucket, event_log, journal, since
        self._get_newest_revision, self._on_close = get_newest_revision, on_close
        self._closed = False

    @property
    def bucket(self) -> str:
        return self._bucket

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def position(self) -> int:
        """The revision up to which all events were delivered, as a bookmark reports it."""
        if self._event_log.floor <= self._position and not self._event_log.list_events_after(self._position):
            self._position = max(self._position, self._get_newest_revision())
        return self._position

    async def next_batch(self, timeout: float | None = None) -> list[StoreEvent]:
        """The next events, at least one; [] after `timeout` seconds without any, or once closed. Raises Gone."""
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while not self._closed:
            if self._position < self._event_log.floor:
                batch = await self._read_from_disk()
            else:
                batch = self._event_log.list_events_after(self._position)
                self._position = max(self._position, self._get_newest_revision())
                if not batch and not await self._wait_for_events(deadline):
                    break
            if batch:
                return batch
        return []

    async def _read_from_disk(self) -> list[StoreEvent]:
        until = self._event_log.floor
        batch = await self._journal.list_events(self._bucket, self._position, until)
        # A read is limited; an empty one has covered everything up to the floor.
        self._position = batch[-1].revision if batch else until
        return batch

    async def _wait_for_events(self, deadline: float | None) -> bool:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._event_log.waiters.add(waiter)
        timer = None if deadline is None else loop.call_at(deadline, _time_out, waiter)
        try:
            return await waiter
        finally:
            self._event_log.waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    async def __aiter__(self) -> AsyncIterator[StoreEvent]:
        while batch := await self.next_batch():
            for event in batch:
                yield event

    def close(self) -> None:
        self._closed = True
        self._on_close(self)
        self._event_log.wake_waiters()


def _time_out(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
