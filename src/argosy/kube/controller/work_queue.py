"""A work queue of keys: deduplicated, one worker per key, exponential backoff after failures, fair among tenants.

In: keys, by `add`, `add_after` and `retry_later`. Out: keys, by `take`. Never: loses a key that was added while it was
processed; lets one tenant use all workers while another waits.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.fair_share import Shares
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, Timer
from argosy.kube.names import ResourceKey


def _nobody(key: ResourceKey) -> str:
    """Assign all keys to one tenant."""
    return ""


@dataclass(slots=True)
class _Line:
    """The waiting keys of one tenant, in order, with the time since which each waits."""

    urgent: dict[ResourceKey, float] = field(default_factory=dict)
    ready: dict[ResourceKey, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.urgent) + len(self.ready)

    def first_times(self) -> Iterator[float]:
        return (next(iter(keys.values())) for keys in (self.urgent, self.ready) if keys)

    def pop(self) -> ResourceKey:
        keys = self.urgent or self.ready
        key = next(iter(keys))
        del keys[key]
        return key


class WorkQueue:
    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        backoff: Backoff = Backoff(),  # noqa: B008 - frozen
        tenant_of: Callable[[ResourceKey], str] = _nobody,
        slots: int = 0,
    ) -> None:
        """`slots` is how many keys of one tenant are processed at once; the same number is reserved for tenants that
        have none in process. With 0, only the number of workers limits them."""
        self._clock = clock
        self._backoff = backoff
        self._tenant_of = tenant_of
        self._shares = Shares(slots, reserve=slots, clock=clock.monotonic) if slots else None
        self._lines: dict[str, _Line] = {}  # non-empty queues by tenant
        self._tenants: dict[ResourceKey, str] = {}  # tenants of keys that wait or are in process
        self._urgent: set[ResourceKey] = set()
        self._wanted: set[ResourceKey] = set()  # keys that wait, or will be enqueued again when they are done
        self._working: dict[ResourceKey, float] = {}  # keys in process, with their start times
        self._later: dict[ResourceKey, tuple[float, Timer]] = {}
        self._failures: dict[ResourceKey, int] = {}
        self._takers: deque[asyncio.Future[None]] = deque()
        self._waiting = 0  # idle workers
        self._closed = False
        self.moved_at = clock.monotonic()  # when a key was last taken or done, or the queue was closed
        self.added = self.retried = 0

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker."""
        return sum(map(len, self._lines.values()))

    def depths(self) -> Mapping[str, int]:
        """Return the number of keys that wait for a worker, by tenant."""
        return {tenant: len(line) for tenant, line in self._lines.items()}

    @property
    def is_idle(self) -> bool:
        """True if no key waits or is in process; delayed keys may remain."""
        return not self._lines and not self._working

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def workers(self) -> int:
        """The number of workers, idle or busy."""
        return self._waiting + len(self._working)

    @property
    def oldest(self) -> float:
        """How many seconds the oldest key has waited."""
        since = [first for line in self._lines.values() for first in line.first_times()]
        return self._clock.monotonic() - min(since) if since else 0.0

    @property
    def longest(self) -> tuple[ResourceKey | None, float]:
        """The key that has been in process for the longest time, and its seconds."""
        working = self.working
        key = max(working, key=working.__getitem__, default=None)
        return (None, 0.0) if key is None else (key, working[key])

    @property
    def working(self) -> dict[ResourceKey, float]:
        """Seconds in process, by key."""
        now = self._clock.monotonic()
        return {key: now - since for key, since in self._working.items()}

    def add(self, key: ResourceKey, *, is_urgent: bool = False) -> None:
        """Enqueue a key. An urgent key goes before all other waiting keys of its tenant."""
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
        """Enqueue a key after a delay. The earlier of two times wins; taking the key before cancels the delay."""
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
        """Enqueue a failed key with exponential backoff; returns the delay in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        wait = self._backoff.delay(failures)
        self.retried += 1
        self.add_after(key, wait)
        return wait

    def succeeded(self, key: ResourceKey) -> None:
        self._failures.pop(key, None)

    async def take(self) -> ResourceKey | None:
        """Return the next key, which the caller owns until `done`; None once the queue is closed."""
        self._waiting += 1
        try:
            while (tenant := self._choose()) is None and not self._closed:
                await self._woken()
        finally:
            self._waiting -= 1
        if self._closed or tenant is None:
            return None
        line = self._lines[tenant]
        key = line.pop()
        if not line:
            del self._lines[tenant]
        if self._shares is not None:
            self._shares.start(tenant)
        self._wanted.discard(key)
        self._working[key] = self.moved_at = self._clock.monotonic()
        if later := self._later.pop(key, None):
            later[1].cancel()
        return key

    def _choose(self) -> str | None:
        if self._shares is None:
            return next(iter(self._lines), None)
        return self._shares.choose(self._lines) if self._lines else None

    async def _woken(self) -> None:
        taker = asyncio.get_running_loop().create_future()
        self._takers.append(taker)
        try:
            await taker
        except asyncio.CancelledError:
            if taker.done() and not taker.cancelled():
                self._wake_one()  # this worker was woken for a key but is cancelled: wake another
            raise
        finally:
            with contextlib.suppress(ValueError):  # `_wake_one` removes it
                self._takers.remove(taker)

    def done(self, key: ResourceKey) -> None:
        since = self._working.pop(key, None)
        self.moved_at = self._clock.monotonic()
        tenant = self._tenants.pop(key, None)
        if self._shares is not None and tenant is not None and since is not None:
            self._shares.finish(tenant, self.moved_at - since)
        if key in self._wanted:  # it was added again while in process
            self._make_ready(key)
        elif self._shares is not None and self._lines:
            self._wake_one()  # a key may have waited for this slot

    def close(self) -> None:
        """Close the queue: every `take` returns None, and delayed keys are dropped."""
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
        tenant = self._tenants.get(key)
        if tenant is None:
            tenant = self._tenants[key] = self._tenant_of(key)
        line = self._lines.setdefault(tenant, _Line())
        if key in self._urgent:
            self._urgent.discard(key)
            line.urgent[key] = line.ready.pop(key, self._clock.monotonic())
        elif key not in line.urgent:
            line.ready[key] = self._clock.monotonic()
        self._wake_one()

    def _wake_one(self) -> None:
        while self._takers:
            taker = self._takers.popleft()
            if not taker.done():
                taker.set_result(None)
                return
