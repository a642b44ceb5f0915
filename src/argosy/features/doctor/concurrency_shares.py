"""Places for work at once, shared by projects: none has all of them while another waits.

In: projects that want a place. Out: the place, for the time of a block. Never: more places at once than there are;
leaves a place empty while somebody waits that may have it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

RESERVED_PLACES: Final = 4  # for projects that have none at work


class ProjectPlaces:
    """`count` places for all, and RESERVED_PLACES beside them for projects that have none; first in, first out.

    Slow work of one project thus keeps no other project waiting. Slow work of so many projects that they have all
    places does.
    """

    def __init__(self, count: int) -> None:
        self._count, self._used = count, Counter[str]()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def hold(self, project: str) -> AsyncIterator[None]:
        await self._take(project)
        try:
            yield
        finally:
            self._give_back(project)

    async def _take(self, project: str) -> None:
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((project, granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # the place was granted before the cancellation came
                self._give_back(project)
            raise

    def _give_back(self, project: str) -> None:
        self._used[project] -= 1
        self._grant()

    def _grant(self) -> None:
        """Give free places to those that wait and may have one, in the order in which they asked."""
        still_waiting: list[tuple[str, asyncio.Future[None]]] = []
        for project, granted in self._waiting:
            if granted.done():
                continue  # cancelled
            if self._may_begin(project):
                self._used[project] += 1
                granted.set_result(None)
            else:
                still_waiting.append((project, granted))
        self._waiting = still_waiting

    def _may_begin(self, project: str) -> bool:
        limit = self._count if self._used[project] else self._count + RESERVED_PLACES
        return self._used.total() < limit
