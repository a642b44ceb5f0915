"""Limits the number of concurrent local runs.

In: the currently allowed number. Out: a slot, in first-come order. Never: more concurrent runs than the latest allowed
number.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Slots:
    def __init__(self) -> None:
        self._taken, self._most = 0, 1
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def taken(self, most: int) -> AsyncIterator[None]:
        self._most = most
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._next()
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._waiting:
                self._waiting.remove(turn)
            elif turn.done() and not turn.cancelled():
                self._free()
            raise
        try:
            yield
        finally:
            self._free()

    def _free(self) -> None:
        self._taken -= 1
        self._next()

    def _next(self) -> None:
        while self._waiting and self._taken < self._most:
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
