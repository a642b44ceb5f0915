"""A queue of keys: no key twice, none worked on by two at once, failed ones later and later.

In: keys, by `add`, `add_after` and `failed`. Out: keys, by `take`. Never: loses a key that was added while it was
worked on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from argosy.model.names import ResourceKey
from argosy.runtime.clock import SYSTEM_CLOCK, Backoff, Clock, Timer


class WorkQueue:
    def __init__(self, *, clock: Clock = SYSTEM_CLOCK, backoff: Backoff = Backoff()) -> None:  # noqa: B008 - frozen
        self._clock = clock
        self._backoff = backoff
        self._ready: dict[ResourceKey, float] = {}  # in their order, with the time since which they wait
        self._hurried: dict[ResourceKey, float] = {}  # those of them that are urgent
        self._urgent: set[ResourceKey] = set()
        self._wanted: set[ResourceKey] = set()  # in `_ready`, or to be once it is done
        self._working: dict[ResourceKey, float] = {}  # since when
        self._later: dict[ResourceKey, tuple[float, Timer]] = {}
        self._failures: dict[ResourceKey, int] = {}
        self._takers: deque[asyncio.Future[None]] = deque()
        self._waiting = 0  # workers that have nothing to do
        self._closed = False
        self.moved_at = clock.monotonic()  # when a key was last taken or done, or all was over
        self.added = self.retried = 0

    def __len__(self) -> int:
        """Keys that wait for a worker now."""
        return len(self._ready) + len(self._hurried)

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is worked on; some may fall due later."""
        return not len(self) and not self._working

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def workers(self) -> int:
        """Who waits for a key, or is at work on one."""
        return self._waiting + len(self._working)

    @property
    def oldest(self) -> float:
        """For how many seconds the key that waits the longest does."""
        since = [next(iter(each.values())) for each in (self._ready, self._hurried) if each]
        return self._clock.monotonic() - min(since) if since else 0.0

    @property
    def longest(self) -> tuple[ResourceKey | None, float]:
        """Which key has been worked on for the longest time, and for how many seconds."""
        working = self.working
        key = max(working, key=working.__getitem__, default=None)
        return (None, 0.0) if key is None else (key, working[key])

    @property
    def working(self) -> dict[ResourceKey, float]:
        """For how many seconds each key has been worked on."""
        now = self._clock.monotonic()
        return {key: now - since for key, since in self._working.items()}

    def add(self, key: ResourceKey, *, is_urgent: bool = False) -> None:
        """What is urgent goes before all that waits."""
        if self._closed:
            return
        if is_urgent:
            self._urgent.add(key)
        if key in self._wanted:
            if is_urgent and key not in self._working:
                self._make_ready(key)
            return
        self._wanted.add(key)
        self.added += 1
        if key not in self._working:
            self._make_ready(key)

    def add_after(self, key: ResourceKey, seconds: float) -> None:
        """The earlier of two times wins; taking the key before that makes both unnecessary."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        known = self._later.get(key)
        if self._closed or (known and known[0] <= due):
            return
        if known:
            known[1].cancel()
        self._later[key] = (due, self._clock.call_later(seconds, lambda: self._fall_due(key)))

    def failed(self, key: ResourceKey) -> float:
        """Try again after a wait that grows with every failure in a row; says how long."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = self._backoff.delay(failures)
        self.retried += 1
        self.add_after(key, wait)
        return wait

    def succeeded(self, key: ResourceKey) -> None:
        self._failures.pop(key, None)

    async def take(self) -> ResourceKey | None:
        """The next key, which is yours until `done`; None once the queue is closed."""
        self._waiting += 1
        try:
            while not len(self) and not self._closed:
                await self._woken()
        finally:
            self._waiting -= 1
        if self._closed:
            return None
        first = self._hurried or self._ready
        key = next(iter(first))
        del first[key]
        self._wanted.discard(key)
        self._working[key] = self.moved_at = self._clock.monotonic()
        if later := self._later.pop(key, None):
            later[1].cancel()
        return key

    async def _woken(self) -> None:
        taker = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled():
                self._wake_one()  # it was woken for a key that it will not take: another must
            raise
        finally:
            with contextlib.suppress(ValueError):  # whoever woke it took it out
                self._takers.remove(taker)

    def done(self, key: ResourceKey) -> None:
        self._working.pop(key, None)
        self.moved_at = self._clock.monotonic()
        if key in self._wanted:  # it changed while it was worked on
            self._make_ready(key)

    def close(self) -> None:
        """Every `take` answers None from now on, and nothing falls due."""
        self._closed, self.moved_at = True, self._clock.monotonic()
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()
        while self._takers:
            self._wake_one()

    def _fall_due(self, key: ResourceKey) -> None:
        self._later.pop(key, None)
        self.add(key)

    def _make_ready(self, key: ResourceKey) -> None:
        if key in self._urgent:
            self._urgent.discard(key)
            self._hurried[key] = self._ready.pop(key, self._clock.monotonic())
        elif key not in self._hurried:
            self._ready[key] = self._clock.monotonic()
        self._wake_one()

    def _wake_one(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return
