"""A watch of one bucket.

In: a revision. Out: every later event, once, in order, in batches. Never: buffers events of its own, so a slow reader
costs no memory: the watch continues from memory, else from disk, else raises Gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from argosy.sandbox.store.entries import Event
from argosy.sandbox.store.event_window import Log
from argosy.sandbox.store.journal import Journal


class Watch:
    """Used by one task at a time. Cancelling `next_batch` loses no event."""

    __slots__ = ("_bucket", "_closed", "_forget", "_journal", "_log", "_newest", "_position")

    def __init__(
        self, bucket: str, log: Log, journal: Journal, *,
        since: int, newest: Callable[[], int], forget: Callable[[Watch], None],
    ) -> None:  # fmt: skip
        self._bucket, self._log, self._journal, self._position = bucket, log, journal, since
        self._newest, self._forget = newest, forget
        self._closed = False

    @property
    def bucket(self) -> str:
        return self._bucket

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def position(self) -> int:
        """The revision up to which all events were delivered, as a bookmark reports it."""
        if self._log.floor <= self._position and not self._log.after(self._position):
            self._position = max(self._position, self._newest())
        return self._position

    async def next_batch(self, timeout: float | None = None) -> list[Event]:
        """The next events, at least one; [] after `timeout` seconds without any, or once closed. Raises Gone."""
        deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout
        while not self._closed:
            if self._position < self._log.floor:
                batch = await self._from_disk()
            else:
                batch = self._log.after(self._position)
                self._position = max(self._position, self._newest())
                if not batch and not await self._news(deadline):
                    break
            if batch:
                return batch
        return []

    async def _from_disk(self) -> list[Event]:
        upto = self._log.floor
        batch = await self._journal.events(self._bucket, self._position, upto)
        # A read is limited; an empty one has covered everything up to the floor.
        self._position = batch[-1].revision if batch else upto
        return batch

    async def _news(self, deadline: float | None) -> bool:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._log.waiters.add(waiter)
        timer = None if deadline is None else loop.call_at(deadline, _give_up, waiter)
        try:
            return await waiter
        finally:
            self._log.waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while batch := await self.next_batch():
            for event in batch:
                yield event

    def close(self) -> None:
        self._closed = True
        self._forget(self)
        self._log.wake()


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
