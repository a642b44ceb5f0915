"""What stands before each call that changes something: whether whoever makes it may still do so.

In: the step that this task is on, if it is one that can be taken away. Out: the call's answer, or NotOurs. Never: lets
a call begin once its step is taken away, or last longer than the Lease that it is under; leaves one behind that nobody
waits for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from argosy.errors import TransientError
from argosy.kube.client.write_hook import BEFORE_SENDING
from argosy.kube.controller.clock import Clock, Timer

log = logging.getLogger(__name__)
T = TypeVar("T")


class NotOurs(TransientError):
    """Another may be at work on it by now. Nobody must act: whoever has it goes on."""


class Permit(Protocol):
    async def carry(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        """Make the call, if that may be. `what` it does, for people."""


_current: Final[ContextVar[Permit | None]] = ContextVar("permit", default=None)


@contextmanager
def under(permit: Permit) -> Iterator[None]:
    """Everything that this task, and those that it begins, change from here on needs this permit."""
    before = _current.set(permit)
    try:
        yield
    finally:
        _current.reset(before)


async def carried(call: Callable[[], Awaitable[T]], what: str) -> T:
    """A call that changes something; without a permit anybody may."""
    permit = _current.get()
    return await (call() if permit is None else permit.carry(call, what))


class Step:
    """One step on a key. Whoever gave it may take it away: from then on nothing is begun.

    What has begun goes on for as long as the Lease under it does, which may be renewed meanwhile: a server may take
    half a minute to ask others about a write. Once the step is taken away it has `seconds` more.
    """

    def __init__(
        self, key: str, is_valid: Callable[[], bool], ends: Callable[[], float], seconds: float, clock: Clock
    ) -> None:
        """`is_valid`: whether a call may begin. `ends`: when the Lease does, by the clock, as it was renewed last."""
        self.key = key
        self._is_valid, self._ends, self._seconds, self._clock = is_valid, ends, seconds, clock
        self._calls: dict[asyncio.Task[Any], Timer] = {}
        self._until: float | None = None  # once it is taken away
        self._has_ended = False
        self.on_quiet: Callable[[], None] = lambda: None

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way, and nothing will be."""
        return (self._until is not None or self._has_ended) and not self._calls

    def take_away(self) -> None:
        if self._until is None:
            self._until = min(self._ends(), self._clock.monotonic() + self._seconds)
            for task, timer in tuple(self._calls.items()):
                timer.cancel()
                self._limit(task)
        self._tell()

    def end(self) -> None:
        self._has_ended = True
        self._tell()

    async def carry(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        """No longer than its Lease lasts; whoever is cancelled meanwhile waits for its end, which comes soon then."""
        self.check()
        began, task = self._clock.monotonic(), asyncio.create_task(self._sent(call))
        # Not asyncio.wait with a second task: after a sleep of this process the call would go on before it is ended.
        self._watch(task, self._seconds)
        task.add_done_callback(self._returned)
        try:
            await asyncio.shield(asyncio.wait({task}))
        except asyncio.CancelledError:
            self._hurry(task)
            await asyncio.wait({task})
            raise
        if task.cancelled():
            said = f"{what} was given up after {self._clock.monotonic() - began:.0f} s without an answer"
            log.warning("%s: %s: the Lease that it was under is over, or another has it", self.key, said)
            raise NotOurs(f"{self.key}: {said}")
        return task.result()

    def _watch(self, task: asyncio.Task[Any], seconds: float) -> None:
        self._calls[task] = self._clock.call_later(seconds, partial(self._limit, task))

    def _limit(self, task: asyncio.Task[Any]) -> None:
        """End it with its Lease. It is looked at more often than that: timers do not count a machine's sleep."""
        if (left := self._left()) > 0.0:
            self._watch(task, min(left, self._seconds))
        else:
            _cancel(task)

    def _hurry(self, task: asyncio.Task[Any]) -> None:
        """Who asked for it wants to go: it is not waited for as long as its Lease lasts."""
        if (timer := self._calls.get(task)) is not None:
            timer.cancel()
            soon = max(0.0, min(self._left(), self._seconds))
            self._calls[task] = self._clock.call_later(soon, partial(_cancel, task))

    def _left(self) -> float:
        return (self._ends() if self._until is None else self._until) - self._clock.monotonic()

    async def _sent(self, call: Callable[[], Awaitable[T]]) -> T:
        BEFORE_SENDING.set(self.check)
        return await call()

    def check(self) -> None:
        """Raises NotOurs where nothing may begin."""
        if self._until is not None or self._has_ended or not self._is_valid():
            raise NotOurs(f"{self.key}: another may be at work on it")

    def _returned(self, task: asyncio.Task[Any]) -> None:
        self._calls.pop(task).cancel()
        if not task.cancelled():
            task.exception()  # whoever was cancelled does not ask for it
        self._tell()

    def _tell(self) -> None:
        if self.is_quiet:
            self.on_quiet()


@contextmanager
def wholly_under(step: Step) -> Iterator[None]:
    """As `under`; and what knows of no permit, and is not `carried`, is asked about when it is sent."""
    before = BEFORE_SENDING.set(step.check)
    try:
        with under(step):
            yield
    finally:
        BEFORE_SENDING.reset(before)


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
