"""Work on large objects, beside the event loop: decoding, merging, validation.

In: a pure function and its arguments. Out: its result. Never: more than one at a time, or what the loop changes.

All of it is Python, so a thread does not make it quicker; it lets the loop answer others meanwhile. One thread, because
each further one would take as much of the loop's time again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

Result = TypeVar("Result")
LARGE_BYTES = 64 << 10  # below it is done at once: it takes milliseconds
# How long the loop waits for its next turn while the thread works; an answer takes several. Python's own is 5 ms.
SWITCH_SECONDS = 0.0005

_thread = ThreadPoolExecutor(1, thread_name_prefix="large-work")


class LargeWork:
    """One job of each user waits for the thread at a time, so users take turns."""

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.running = 0

    async def run(self, user: str, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Calls the function: at once if the object is small, else in the thread."""
        if size < LARGE_BYTES:
            return function(*args)
        turn = self._turns.get(user)
        if turn is None:
            turn = self._turns[user] = asyncio.Lock()
        async with turn:
            self.running += 1
            try:
                return await asyncio.get_running_loop().run_in_executor(
                    _thread, partial(_quick_to_yield, function, *args)
                )
            finally:
                self.running -= 1


def _quick_to_yield(function: Callable[..., Result], *args: Any) -> Result:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        return function(*args)
    finally:
        sys.setswitchinterval(usual)
