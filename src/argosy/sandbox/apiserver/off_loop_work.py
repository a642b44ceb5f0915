"""Runs work on large objects off the event loop: decoding, merging, validation, encoding.

In: a pure function and its arguments. Out: its result. Never: runs two at a time, or reads state that the loop changes.

The work is Python, so a thread does not make it faster; it lets the loop serve other requests meanwhile. There is one
thread, because each additional one would take the same share of the loop's time.
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
LARGE_BYTES = 64 << 10  # smaller objects are handled on the loop: they take milliseconds
# A large write has 5 to 10 jobs; without this limit, constant writes would starve reads.
MAX_WRITE_JOBS_BEFORE_READ = 16
# How long the loop waits for the GIL while the thread works; a response needs it several times. Default: 5 ms.
SWITCH_INTERVAL_SECONDS = 0.0005

_thread = ThreadPoolExecutor(1, thread_name_prefix="large-work")


class OffLoopExecutor:
    """One thread for the jobs of all users: writes go before reads, and users take turns.

    At most one write job and one read job of each user wait for the thread. They wait separately, because kubectl and
    the engine may be the same user, and lists of one must not delay writes of the other.
    """

    def __init__(self) -> None:
        self._user_locks: WeakValueDictionary[tuple[str, bool], asyncio.Lock] = WeakValueDictionary()
        self._writes: deque[asyncio.Future[None]] = deque()
        self._reads: deque[asyncio.Future[None]] = deque()
        self._is_busy = False
        self._writes_before_read = 0  # write jobs that overtook a waiting read

    async def run(self, user: str, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Run one step of a write: on the loop if the object is small, else in the thread."""
        if size < LARGE_BYTES:
            return function(*args)
        return await self._run_in_thread(user, False, partial(function, *args))

    async def run_read(self, user: str, size: int, function: Callable[..., Result], *args: Any) -> Result:
        """Encode the response of a read like `run`, but after waiting writes."""
        if size < LARGE_BYTES:
            return function(*args)
        return await self._run_in_thread(user, True, partial(function, *args))

    async def _run_in_thread(self, user: str, is_read: bool, job: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        user_lock = self._user_locks.get((user, is_read))
        if user_lock is None:
            user_lock = self._user_locks[(user, is_read)] = asyncio.Lock()
        await user_lock.acquire()
        try:
            await self._wait_for_thread(self._reads if is_read else self._writes)
        except BaseException:
            user_lock.release()
            raise
        try:
            return await loop.run_in_executor(_thread, _run_with_short_switch_interval, job)
        finally:
            user_lock.release()
            # Deferred, so that this user's next job, or the next step of this write, can join the queue first.
            loop.call_soon(self._start_next)

    async def _wait_for_thread(self, queue: deque[asyncio.Future[None]]) -> None:
        if not self._is_busy:
            self._is_busy = True
            return
        waiter = asyncio.get_running_loop().create_future()
        queue.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():  # the thread was already given to this job
                self._start_next()
            elif waiter in queue:
                queue.remove(waiter)
            raise

    def _start_next(self) -> None:
        """Start the job that waited longest: a write, unless many writes have overtaken a waiting read."""
        while self._writes or self._reads:
            is_read_due = bool(self._reads) and self._writes_before_read >= MAX_WRITE_JOBS_BEFORE_READ
            queue = self._writes if self._writes and not is_read_due else self._reads
            waiter = queue.popleft()
            if not waiter.done():  # else its request was just cancelled
                self._writes_before_read = self._writes_before_read + 1 if queue is self._writes and self._reads else 0
                waiter.set_result(None)
                return
        self._is_busy = False


def _run_with_short_switch_interval(function: Callable[[], Result]) -> Result:
    previous_interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    try:
        return function()
    finally:
        sys.setswitchinterval(previous_interval)
