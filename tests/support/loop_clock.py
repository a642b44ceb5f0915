"""Moves the clock of an asyncio event loop.

In: the running loop, and offsets. Out: timers that are due fire. Never: use it on a loop that is shared with other
tests, because the clock of the loop stays ahead.
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
    """Run ready callbacks and those they schedule, for a fixed number of loop iterations."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until_still(number: Callable[[], int], seconds: float = 0.3) -> int:
    """Wait until the number is the same before and after a pause, and return it.

    Use it only to show that something does not happen; otherwise wait for the event.
    """
    async with asyncio.timeout(HANG_SECONDS):
        previous = None
        while previous != number():
            previous = number()
            await asyncio.sleep(seconds)
            await turns()
    return previous
