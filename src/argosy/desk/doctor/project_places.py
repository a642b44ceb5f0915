"""Places for work at once, shared by projects: none has all of them while another waits.

In: projects that want a place. Out: the place, for the time of a block. Never: leaves a place empty while somebody
waits that may have it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ProjectPlaces:
    """`count` places for all. A project that has none gets one beside them, so that slow work of others is no wait."""

    def __init__(self, count: int) -> None:
        self._count, self._used = count, Counter[str]()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold(self, project: str) -> AsyncIterator[None]:
        async with self._changed:
            await self._changed.wait_for(lambda: self._may_begin(project))
            self._used[project] += 1
        try:
            yield
        finally:
            async with self._changed:
                self._used[project] -= 1
                self._changed.notify_all()

    def _may_begin(self, project: str) -> bool:
        return self._used[project] == 0 or self._used.total() < self._count
