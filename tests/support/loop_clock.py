"""The clock of an event loop, which a test moves.

In: the running loop of asyncio, and leaps. Out: timers that are due as soon as the clock has leapt past them. Never: a
loop that is shared with other tests: its clock stays ahead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from support.deadlines import HANG_SECONDS


class LoopClock:
    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._time, self._ahead = loop.time, 0.0
        loop.time = self._now  # type: ignore[method-assign]

    def _now(self) -> float:
        return self._time() + self._ahead

    def leap(self, seconds: float) -> None:
        self._ahead += seconds


async def turns(count: int = 200) -> None:
    """Everything has run that was ready, and what that made ready in turn: a number of turns, on every machine."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until_still(number: Callable[[], int], seconds: float = 0.3) -> int:
    """The number, once it has stood still for a while in which also whatever a timer began has had its turns.

    Only for showing that something does not happen: what must happen is waited for.
    """
    async with asyncio.timeout(HANG_SECONDS):
        seen = None
        while seen != number():
            seen = number()
            await asyncio.sleep(seconds)
            await turns()
    return seen
