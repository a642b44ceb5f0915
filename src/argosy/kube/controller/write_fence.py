"""Write fencing: a check before every mutating call that this process still owns the key.

In: the permit of the current task, if it has one. Out: the result of the call, or NotOwner. Never: starts a call after
its permit was revoked; lets a call continue after its Lease has expired; leaves a call running without a waiter.
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
    """Another process may own the key now. Nobody must act: the owner continues the work."""


class Permit(Protocol):
    async def carry(self, call: Callable[[], Awaitable[T]], what: str) -> T:
        """Run a mutating call if permitted. The description is for log lines and errors."""


_current: Final[ContextVar[Permit | None]] = ContextVar("permit", default=None)


@contextmanager
def under(permit: Permit) -> Iterator[None]:
    """Require this permit for all writes of this task, and of tasks that it starts."""
    before = _current.set(permit)
    try:
        yield
    finally:
        _current.reset(before)


async def carried(call: Callable[[], Awaitable[T]], what: str) -> T:
    """Run a mutating call with the permit of the current task; without a permit, run it unchecked."""
    permit = _current.get()
    return await (call() if permit is None else permit.carry(call, what))


class Step:
    """A permit for one step on a key. After `revoke` no call starts.

    A running call may continue until the Lease expires, which may be renewed meanwhile: admission webhooks may take
    half a minute. After a revocation it has `grace_seconds` more.
    """

    def __init__(
        self, key: str, is_valid: Callable[[], bool], ends: Callable[[], float], seconds: float, clock: Clock
    ) -> None:
        """`is_valid`: True if a call may start. `lease_ends_at`: monotonic time at which the Lease expires."""
        self.key = key
        self._is_valid, self._ends, self._seconds, self._clock = is_valid, ends, seconds, clock
        self._calls: dict[asyncio.Task[Any], Timer] = {}
        self._until: float | None = None  # deadline of running calls after a revocation
        self._has_ended = False
        self.on_quiet: Callable[[], None] = lambda: None

    @property
    def is_quiet(self) -> bool:
        """True if no call is running, and none can start."""
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
        """Run a call until its Lease expires. If the caller is cancelled, it waits for the call, which ends soon."""
        self.check()
        began, task = self._clock.monotonic(), asyncio.create_task(self._sent(call))
        # A timer and not asyncio.wait with a timeout task: after a suspend, the call would continue before it is ended.
        self._watch(task, self._seconds)
        task.add_done_callback(self._returned)
        try:
            await asyncio.shield(asyncio.wait({task}))
        except asyncio.CancelledError:
            self._hurry(task)
            await asyncio.wait({task})
            raise
        if task.cancelled():
            said = f"{what} was cancelled after {self._clock.monotonic() - began:.0f} s without an answer"
            log.warning("write cancelled, the Lease expired or was lost: key=%s call=%s", self.key, said)
            raise NotOurs(f"{self.key}: {said}")
        return task.result()

    def _watch(self, task: asyncio.Task[Any], seconds: float) -> None:
        self._calls[task] = self._clock.call_later(seconds, partial(self._limit, task))

    def _limit(self, task: asyncio.Task[Any]) -> None:
        """Cancel the call when its Lease has expired. Checked more often: timers do not count suspended time."""
        if (left := self._left()) > 0.0:
            self._watch(task, min(left, self._seconds))
        else:
            _cancel(task)

    def _hurry(self, task: asyncio.Task[Any]) -> None:
        """Shorten the limit of a call whose caller was cancelled."""
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
        """Raise NotOwner if no call may start."""
        if self._until is not None or self._has_ended or not self._is_valid():
            raise NotOurs(f"{self.key}: another process may own it now")

    def _returned(self, task: asyncio.Task[Any]) -> None:
        self._calls.pop(task).cancel()
        if not task.cancelled():
            task.exception()  # a cancelled caller does not retrieve it
        self._tell()

    def _tell(self) -> None:
        if self.is_quiet:
            self.on_quiet()


@contextmanager
def wholly_under(step: Step) -> Iterator[None]:
    """Like `require_permit`, and also check every mutating request that does not use `run_write` before it is sent."""
    before = BEFORE_SENDING.set(step.check)
    try:
        with under(step):
            yield
    finally:
        BEFORE_SENDING.reset(before)


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
