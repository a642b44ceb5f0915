"""Work on large objects, beside the event loop: decoding, merging, validation, rendering.

In: a pure function and its arguments. Out: its result. Never: more than one at a time, or what the loop changes.

All of it is Python, so a thread does not make it quicker; it lets the loop answer others meanwhile. One thread, because
each further one would take as much of the loop's time again.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

Result = TypeVar("Result")
LARGE_BYTES = 64 << 10  # below it is done at once: it takes milliseconds
MAX_WRITE_JOBS_BEFORE_READ = 16  # a large write has 5 to 10: reads go on while others write without a pause
# How long the loop waits for its next turn while the thread works; an answer takes several. Python's own is 5 ms.
SWITCH_SECONDS = 0.0005

_thread = ThreadPoolExecutor(1, thread_name_prefix="large-work")


class LargeWork:
    """One thread for the jobs of all users: writes go before reads, and users take turns.

    One job of each user waits for the thread at a time, and beside it one read of that user: kubectl and the engine may
    be the same user, and the lists of the one must not hold up the writes of the other.
    """

    def __init__(self) -> None:
        self._turns: WeakValueDictionary[tuple[str, bool], asyncio.Lock] = WeakValueDictionary()
        self._writes: deque[asyncio.Future[None]] = deque()
        self._reads: deque[asyncio.Future[None]] = deque()
        self._is_busy = False
        self._writes_before_read = 0  # write jobs that went before a read that waits

    async def run(self, user: str, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Calls the function, a step of a write: at once if the object is small, else in the thread."""
        if size < LARGE_BYTES:
            return function(*args)
        return await self._run_in_thread(user, False, partial(function, *args))

    async def run_read(self, user: str, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Calls the function, which renders an answer to a read, as `run` does, but after the writes that wait."""
        if size < LARGE_BYTES:
            return function(*args)
        return await self._run_in_thread(user, True, partial(function, *args))

    async def _run_in_thread(self, user: str, is_read: bool, job: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        turn = self._turns.get((user, is_read))
        if turn is None:
            turn = self._turns[(user, is_read)] = asyncio.Lock()
        await turn.acquire()
        try:
            await self._wait_for_thread(self._reads if is_read else self._writes)
        except BaseException:
            turn.release()
            raise
        try:
            return await loop.run_in_executor(_thread, _quick_to_yield, job)
        finally:
            turn.release()
            # Later: first this user's next job joins the queue, and the next step of the write that this job is of.
            loop.call_soon(self._start_next)

    async def _wait_for_thread(self, queue: deque[asyncio.Future[None]]) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        place = asyncio.get_running_loop().create_future()
        queue.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():  # it was this job's turn
                self._start_next()
            elif place in queue:
                queue.remove(place)
            raise

    def _start_next(self) -> None:
        """Let the job go that waited longest: a write, unless many writes went before a read that waits."""
        while self._writes or self._reads:
            is_read_due = bool(self._reads) and self._writes_before_read >= MAX_WRITE_JOBS_BEFORE_READ
            queue = self._writes if self._writes and not is_read_due else self._reads
            place = queue.popleft()
            if not place.done():  # else its request was cancelled just now
                self._writes_before_read = self._writes_before_read + 1 if queue is self._writes and self._reads else 0
                place.set_result(None)
                return
        self._is_busy = False


def _quick_to_yield(function: Callable[[], Result]) -> Result:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        return function()
    finally:
        sys.setswitchinterval(usual)
