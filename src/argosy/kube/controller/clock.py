"""Clocks that are passed to controllers, and waiting with them.

In: durations, awaitables. Out: a Clock, results or TimeoutError. Never: used by a controller without being passed in.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the wall-clock time in UTC, for users and timestamps."""

    def monotonic(self) -> float:
        """Return monotonic seconds, for durations."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class BootClock(SystemClock):
    """A clock whose durations include the time that the machine was suspended, so that Leases expire in time."""

    def monotonic(self) -> float:
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)


SYSTEM_CLOCK = SystemClock()
BOOT_CLOCK = BootClock()


async def sleep(clock: Clock, seconds: float) -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not future.done():
            future.set_result(None)

    timer = clock.call_later(max(seconds, 0.0), wake)
    try:
        await future
    finally:
        timer.cancel()


async def run_with_timeout(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """Return the result of `work`; if it takes longer, cancel it and raise TimeoutError."""
    task, timer = asyncio.ensure_future(work), asyncio.ensure_future(sleep(clock, seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        timer.cancel()
        await cancel_and_wait(task)


async def run_unless_failed(other: asyncio.Task[Any], work: Awaitable[T]) -> T:
    """Return the result of `work`; if `other` fails first, cancel `work` and raise the error of `other`."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            other.result()
        return await task
    finally:
        await cancel_and_wait(task)


def is_being_cancelled() -> bool:
    """True if the current task is being cancelled; else a CancelledError came from an awaited task."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def cancel_and_wait(task: asyncio.Future[Any]) -> None:
    """Cancel a task and wait for its end; its exception is ignored."""
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    elif not task.cancelled():
        task.exception()


@dataclass(frozen=True)
class Backoff:
    """Delays in seconds that double from the first to the maximum, each reduced by a random share up to `jitter`."""

    first_seconds: float = 0.1
    max_seconds: float = 60.0
    jitter: float = 0.2

    def delay(self, failures: int) -> float:
        """Return the delay after this number of consecutive failures, counted from 1."""
        seconds = min(self.first_seconds * 2.0 ** min(failures - 1, 60), self.max_seconds)
        return seconds * (1.0 - self.jitter * random.random())  # noqa: S311 - spreads load
