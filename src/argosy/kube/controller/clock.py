"""Time, passed in. In: nothing. Out: a Clock. Never: read by a controller from anywhere else."""

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
        """The time of day in UTC, for people and timestamps."""

    def monotonic(self) -> float:
        """Seconds that only grow, for durations."""

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)


class BootClock(SystemClock):
    """Its durations count the time too for which the machine sleeps, as those of every other machine do."""

    def monotonic(self) -> float:
        boot = getattr(time, "CLOCK_BOOTTIME", None)
        return time.monotonic() if boot is None else time.clock_gettime(boot)


SYSTEM_CLOCK = SystemClock()
BOOT_CLOCK = BootClock()


async def sleep(clock: Clock, seconds: float) -> None:
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    timer = clock.call_later(max(seconds, 0.0), wake)
    try:
        await woken
    finally:
        timer.cancel()


async def within(clock: Clock, seconds: float, work: Awaitable[T]) -> T:
    """`work`'s answer; TimeoutError, and `work` cancelled, if it takes longer."""
    task, limit = asyncio.ensure_future(work), asyncio.ensure_future(sleep(clock, seconds))
    try:
        await asyncio.wait({task, limit}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError
    finally:
        limit.cancel()
        await let_go(task)


async def beside(other: asyncio.Task[Any], work: Awaitable[T]) -> T:
    """`work`'s answer; what `other` fails with, and `work` cancelled, if that comes first."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, other}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            other.result()
        return await task
    finally:
        await let_go(task)


def is_ended() -> bool:
    """Whether somebody ends the task that asks; else a CancelledError is of something that it waited for."""
    me = asyncio.current_task()
    return me is None or me.cancelling() > 0


async def let_go(task: asyncio.Future[Any]) -> None:
    """Nobody asks for it any more, not even for why it failed."""
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    elif not task.cancelled():
        task.exception()


@dataclass(frozen=True)
class Backoff:
    """Waits that double from `first` up to `most`; each is spread by up to `jitter` of itself, downwards."""

    first: float = 0.1
    most: float = 60.0
    jitter: float = 0.2

    def delay(self, failures: int) -> float:
        """After so many failures in a row, counted from 1."""
        whole = min(self.first * 2.0 ** min(failures - 1, 60), self.most)
        return whole * (1.0 - self.jitter * random.random())  # noqa: S311 - spreads load
