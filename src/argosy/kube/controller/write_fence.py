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
from argosy.kube.client.before_write_hook import BEFORE_WRITE
from argosy.kube.controller.clock import Clock, Timer

log = logging.getLogger(__name__)
T = TypeVar("T")


class NotOwner(TransientError):
    """Another process may own the key now. Nobody must act: the owner continues the work."""


class WritePermit(Protocol):
    async def run_write(self, call: Callable[[], Awaitable[T]], description: str) -> T:
        """Run a mutating call if permitted. The description is for log lines and errors."""


_current_permit: Final[ContextVar[WritePermit | None]] = ContextVar("permit", default=None)


@contextmanager
def require_permit(permit: WritePermit) -> Iterator[None]:
    """Require this permit for all writes of this task, and of tasks that it starts."""
    token = _current_permit.set(permit)
    try:
        yield
    finally:
        _current_permit.reset(token)


async def run_write(call: Callable[[], Awaitable[T]], description: object) -> T:
    """Run a mutating call with the permit of the current task; without a permit, run it unchecked.

    The description is only formatted for a permit.
    """
    permit = _current_permit.get()
    return await (call() if permit is None else permit.run_write(call, str(description)))


class FencedStep:
    """A permit for one step on a key. After `revoke` no call starts.

    A running call may continue until the Lease expires, which may be renewed meanwhile: admission webhooks may take
    half a minute. After a revocation it has `grace_seconds` more.
    """

    def __init__(
        self,
        key: str,
        is_valid: Callable[[], bool],
        lease_ends_at: Callable[[], float],
        grace_seconds: float,
        clock: Clock,
    ) -> None:
        """`is_valid`: True if a call may start. `lease_ends_at`: monotonic time at which the Lease expires."""
        self.key = key
        self._is_valid, self._lease_ends_at, self._grace_seconds, self._clock = (
            is_valid,
            lease_ends_at,
            grace_seconds,
            clock,
        )
        self._calls: dict[asyncio.Task[Any], Timer] = {}
        self._revoked_until: float | None = None  # deadline of running calls after a revocation
        self._has_ended = False
        self.on_finished: Callable[[], None] = lambda: None

    @property
    def is_finished(self) -> bool:
        """True if no call is running, and none can start."""
        return (self._revoked_until is not None or self._has_ended) and not self._calls

    def revoke(self) -> None:
        if self._revoked_until is None:
            self._revoked_until = min(self._lease_ends_at(), self._clock.monotonic() + self._grace_seconds)
            for task, timer in tuple(self._calls.items()):
                timer.cancel()
                self._enforce_limit(task)
        self._notify_if_finished()

    def close(self) -> None:
        self._has_ended = True
        self._notify_if_finished()

    async def run_write(self, call: Callable[[], Awaitable[T]], description: str) -> T:
        """Run a call until its Lease expires. If the caller is cancelled, it waits for the call, which ends soon."""
        self.check()
        started_at, task = self._clock.monotonic(), asyncio.create_task(self._run_checked(call))
        # A timer and not asyncio.wait with a timeout task: after a suspend, the call would continue before it is ended.
        self._schedule_limit(task, self._grace_seconds)
        task.add_done_callback(self._on_call_done)
        try:
            await asyncio.shield(asyncio.wait({task}))
        except asyncio.CancelledError:
            self._shorten_limit(task)
            await asyncio.wait({task})
            raise
        if task.cancelled():
            message = (
                f"{description} was cancelled after {self._clock.monotonic() - started_at:.0f} s without an answer"
            )
            log.warning("write cancelled, the Lease expired or was lost: key=%s call=%s", self.key, message)
            raise NotOwner(f"{self.key}: {message}")
        return task.result()

    def _schedule_limit(self, task: asyncio.Task[Any], seconds: float) -> None:
        self._calls[task] = self._clock.call_later(seconds, partial(self._enforce_limit, task))

    def _enforce_limit(self, task: asyncio.Task[Any]) -> None:
        """Cancel the call when its Lease has expired. Checked more often: timers do not count suspended time."""
        if (seconds_left := self._seconds_left()) > 0.0:
            self._schedule_limit(task, min(seconds_left, self._grace_seconds))
        else:
            _cancel(task)

    def _shorten_limit(self, task: asyncio.Task[Any]) -> None:
        """Shorten the limit of a call whose caller was cancelled."""
        if (timer := self._calls.get(task)) is not None:
            timer.cancel()
            seconds = max(0.0, min(self._seconds_left(), self._grace_seconds))
            self._calls[task] = self._clock.call_later(seconds, partial(_cancel, task))

    def _seconds_left(self) -> float:
        return (self._lease_ends_at() if self._revoked_until is None else self._revoked_until) - self._clock.monotonic()

    async def _run_checked(self, call: Callable[[], Awaitable[T]]) -> T:
        BEFORE_WRITE.set(self.check)
        return await call()

    def check(self) -> None:
        """Raise NotOwner if no call may start."""
        if self._revoked_until is not None or self._has_ended or not self._is_valid():
            raise NotOwner(f"{self.key}: another process may own it now")

    def _on_call_done(self, task: asyncio.Task[Any]) -> None:
        self._calls.pop(task).cancel()
        if not task.cancelled():
            task.exception()  # a cancelled caller does not retrieve it
        self._notify_if_finished()

    def _notify_if_finished(self) -> None:
        if self.is_finished:
            self.on_finished()


@contextmanager
def require_permit_for_all_requests(step: FencedStep) -> Iterator[None]:
    """Like `require_permit`, and also check every mutating request that does not use `run_write` before it is sent."""
    token = BEFORE_WRITE.set(step.check)
    try:
        with require_permit(step):
            yield
    finally:
        BEFORE_WRITE.reset(token)


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
