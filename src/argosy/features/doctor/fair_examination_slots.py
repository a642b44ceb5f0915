"""Shares concurrency slots fairly between projects.

In: projects that request a slot. Out: a slot for the duration of a block. Never: exceeds the number of slots; leaves a
slot unused while an eligible project waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

RESERVED_SLOTS: Final = 4  # for projects without a slot


class ProjectSlots:
    """`count` slots for all, and RESERVED_SLOTS more for projects without a slot; first in, first out.

    Slow work of one project therefore does not block others, unless slow projects together hold all slots.
    """

    def __init__(self, count: int) -> None:
        self._count, self._used = count, Counter[str]()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def hold(self, project: str) -> AsyncIterator[None]:
        await self._acquire(project)
        try:
            yield
        finally:
            self._release(project)

    async def _acquire(self, project: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((project, granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # the slot was granted before the cancellation
                self._release(project)
            raise

    def _release(self, project: str) -> None:
        self._used[project] -= 1
        self._grant()

    def _grant(self) -> None:
        """Grant free slots to eligible waiters, in the order of their requests."""
        still_waiting: list[tuple[str, asyncio.Future[None]]] = []
        for project, granted in self._waiting:
            if granted.done():
                continue  # cancelled
            if self._can_start(project):
                self._used[project] += 1
                granted.set_result(None)
            else:
                still_waiting.append((project, granted))
        self._waiting = still_waiting

    def _can_start(self, project: str) -> bool:
        limit = self._count if self._used[project] else self._count + RESERVED_SLOTS
        return self._used.total() < limit
