"""Limits the number of concurrent local runs.

In: the currently allowed number. Out: a slot, in first-come order. Never: more concurrent runs than the latest allowed
number.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class RunSlots:
    def __init__(self) -> None:
        self._taken_count, self._max_slots = 0, 1
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def acquire(self, max_slots: int) -> AsyncIterator[None]:
        self._max_slots = max_slots
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(slot)
        self._grant_slots()
        try:
            await slot
        except asyncio.CancelledError:
            if slot in self._waiting:
                self._waiting.remove(slot)
            elif slot.done() and not slot.cancelled():
                self._release()
            raise
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        self._taken_count -= 1
        self._grant_slots()

    def _grant_slots(self) -> None:
        while self._waiting and self._taken_count < self._max_slots:
            slot = self._waiting.popleft()
            if not slot.done():
                self._taken_count += 1
                slot.set_result(None)
