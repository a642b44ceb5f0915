"""What stands before each call that changes something: whether whoever makes it may still do so.

In: the step that this task is on, if it is one that can be taken away. Out: the call's answer, or NotOurs. Never: lets
a call begin once its step is taken away; leaves one behind that nobody waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from argosy.cluster.sending import BEFORE_SENDING
from argosy.model.errors import TransientError
from argosy.runtime.clock import Clock

T = TypeVar("T")


class NotOurs(TransientError):
    """Another may be at work on it by now. Nobody must act: whoever has it goes on."""


class Permit(Protocol):
    async def carry(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make the call, if that may be."""


_current: Final[ContextVar[Permit | None]] = ContextVar("permit", default=None)


@contextmanager
def under(permit: Permit) -> Iterator[None]:
    """Everything that this task, and those that it begins, change from here on needs this permit."""
    before = _current.set(permit)
    try:
        yield
    finally:
        _current.reset(before)


async def carried(call: Callable[[], Awaitable[T]]) -> T:
    """A call that changes something; without a permit anybody may."""
    permit = _current.get()
    return await (call() if permit is None else permit.carry(call))


class Step:
    """One step on a key. Whoever gave it may take it away: from then on nothing is begun."""

    def __init__(self, key: str, is_valid: Callable[[], bool], seconds: float, clock: Clock) -> None:
        self.key = key
        self._is_valid, self._seconds, self._clock = is_valid, seconds, clock
        self._calls: set[asyncio.Task[Any]] = set()
        self._is_taken = self._has_ended = False
        self.on_quiet: Callable[[], None] = lambda: None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way, and nothing will be."""
        return (self._is_taken or self._has_ended) and not self._calls

    def take_away(self) -> None:
        self._is_taken = True
        self._tell()

    def end(self) -> None:
        self._has_ended = True
        self._tell()

    async def carry(self, call: Callable[[], Awaitable[T]]) -> T:
        """No longer than the time that is kept free for it; whoever is cancelled meanwhile waits for its end."""
        self._check()
        task = asyncio.create_task(self._sent(call))
        self._calls.add(task)
        task.add_done_callback(self._returned)
        # Not asyncio.wait with a second task: after a sleep of this process the call would go on before it is ended.
        limit = self._clock.call_later(self._seconds, partial(_cancel, task))
        try:
            await asyncio.shield(asyncio.wait({task}))
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise
        finally:
            limit.cancel()
        if task.cancelled():
            raise TransientError(f"no answer within {self._seconds:g} s")
        return task.result()

    async def _sent(self, call: Callable[[], Awaitable[T]]) -> T:
        BEFORE_SENDING.set(self._check)
        return await call()

    def _check(self) -> None:
        if self._is_taken or self._has_ended or not self._is_valid():
            raise NotOurs(f"{self.key}: another may be at work on it")

    def _returned(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # whoever was cancelled does not ask for it
        self._tell()

    def _tell(self) -> None:
        if self.is_quiet:
            self.on_quiet()


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
