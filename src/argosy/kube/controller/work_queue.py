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

from argosy.fair_share import FairShareScheduler
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, Timer
from argosy.kube.resource_key import ResourceKey


def _get_common_tenant(key: ResourceKey) -> str:
    """Assign all keys to one tenant."""
    return ""


@dataclass(slots=True)
class _TenantQueue:
    """The waiting keys of one tenant, in order, with the time since which each waits."""

    urgent: dict[ResourceKey, float] = field(default_factory=dict)
    normal: dict[ResourceKey, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.urgent) + len(self.normal)

    def oldest_times(self) -> Iterator[float]:
        return (next(iter(keys.values())) for keys in (self.urgent, self.normal) if keys)

    def pop(self) -> ResourceKey:
        keys = self.urgent or self.normal
        key = next(iter(keys))
        del keys[key]
        return key


class WorkQueue:
    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        backoff: Backoff = Backoff(),  # noqa: B008 - frozen
        find_tenant: Callable[[ResourceKey], str] = _get_common_tenant,
        slots_per_tenant: int = 0,
    ) -> None:
        """`slots` is how many keys of one tenant are processed at once; the same number is reserved for tenants that
        have none in process. With 0, only the number of workers limits them."""
        self._clock = clock
        self._backoff = backoff
        self._find_tenant = find_tenant
        self._scheduler = (
            FairShareScheduler(slots_per_tenant, reserve=slots_per_tenant, clock=clock.monotonic)
            if slots_per_tenant
            else None
        )
        self._tenant_queues: dict[str, _TenantQueue] = {}  # non-empty queues by tenant
        self._tenants: dict[ResourceKey, str] = {}  # tenants of keys that wait or are in process
        self._urgent: set[ResourceKey] = set()
        self._dirty: set[ResourceKey] = set()  # keys that wait, or will be enqueued again when they are done
        self._processing: dict[ResourceKey, float] = {}  # keys in process, with their start times
        self._delayed: dict[ResourceKey, tuple[float, Timer]] = {}
        self._failures: dict[ResourceKey, int] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._idle_workers = 0  # idle workers
        self._closed = False
        self.last_progress_at = clock.monotonic()  # when a key was last taken or done, or the queue was closed
        self.added_count = self.retried_count = 0

    def __len__(self) -> int:
        """Return the number of keys that wait for a worker."""
        return sum(map(len, self._tenant_queues.values()))

    def list_depths(self) -> Mapping[str, int]:
        """Return the number of keys that wait for a worker, by tenant."""
        return {tenant: len(queue) for tenant, queue in self._tenant_queues.items()}

    @property
    def is_idle(self) -> bool:
        """True if no key waits or is in process; delayed keys may remain."""
        return not self._tenant_queues and not self._processing

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def worker_count(self) -> int:
        """The number of workers, idle or busy."""
        return self._idle_workers + len(self._processing)

    @property
    def oldest_wait_seconds(self) -> float:
        """How many seconds the oldest key has waited."""
        times = [time for queue in self._tenant_queues.values() for time in queue.oldest_times()]
        return self._clock.monotonic() - min(times) if times else 0.0

    @property
    def longest_processing(self) -> tuple[ResourceKey | None, float]:
        """The key that has been in process for the longest time, and its seconds."""
        seconds_by_key = self.processing_seconds
        key = max(seconds_by_key, key=seconds_by_key.__getitem__, default=None)
        return (None, 0.0) if key is None else (key, seconds_by_key[key])

    @property
    def processing_seconds(self) -> dict[ResourceKey, float]:
        """Seconds in process, by key."""
        now = self._clock.monotonic()
        return {key: now - since for key, since in self._processing.items()}

    def add(self, key: ResourceKey, *, is_urgent: bool = False) -> None:
        """Enqueue a key. An urgent key goes before all other waiting keys of its tenant."""
        if self._closed:
            return
        if is_urgent:
            self._urgent.add(key)
        if key in self._dirty:
            if is_urgent and key not in self._processing:
                self._enqueue(key)
            return
        self._dirty.add(key)
        self.added_count += 1
        if key not in self._processing:
            self._enqueue(key)

    def add_after(self, key: ResourceKey, seconds: float) -> None:
        """Enqueue a key after a delay. The earlier of two times wins; taking the key before cancels the delay."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        delayed = self._delayed.get(key)
        if self._closed or (delayed and delayed[0] <= due):
            return
        if delayed:
            delayed[1].cancel()
        self._delayed[key] = (due, self._clock.call_later(seconds, lambda: self._enqueue_delayed(key)))

    def retry_later(self, key: ResourceKey) -> float:
        """Enqueue a failed key with exponential backoff; returns the delay in seconds."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        delay = self._backoff.delay(failures)
        self.retried_count += 1
        self.add_after(key, delay)
        return delay

    def forget_failures(self, key: ResourceKey) -> None:
        self._failures.pop(key, None)

    async def take(self) -> ResourceKey | None:
        """Return the next key, which the caller owns until `done`; None once the queue is closed."""
        self._idle_workers += 1
        try:
            while (tenant := self._choose_tenant()) is None and not self._closed:
                await self._wait_for_key()
        finally:
            self._idle_workers -= 1
        if self._closed or tenant is None:
            return None
        queue = self._tenant_queues[tenant]
        key = queue.pop()
        if not queue:
            del self._tenant_queues[tenant]
        if self._scheduler is not None:
            self._scheduler.start_turn(tenant)
        self._dirty.discard(key)
        self._processing[key] = self.last_progress_at = self._clock.monotonic()
        if delayed := self._delayed.pop(key, None):
            delayed[1].cancel()
        return key

    def _choose_tenant(self) -> str | None:
        if self._scheduler is None:
            return next(iter(self._tenant_queues), None)
        return self._scheduler.choose_next(self._tenant_queues) if self._tenant_queues else None

    async def _wait_for_key(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._wake_one()  # this worker was woken for a key but is cancelled: wake another
            raise
        finally:
            with contextlib.suppress(ValueError):  # `_wake_one` removes it
                self._waiters.remove(waiter)

    def restart(self, key: ResourceKey) -> None:
        """Start the turn of a key in process again: its owner reads all state anew, so what was added before is done.

        Like `take`, this cancels a delay.
        """
        if key not in self._processing:
            return
        self._dirty.discard(key)
        self._urgent.discard(key)
        if delayed := self._delayed.pop(key, None):
            delayed[1].cancel()

    def done(self, key: ResourceKey) -> None:
        since = self._processing.pop(key, None)
        self.last_progress_at = self._clock.monotonic()
        tenant = self._tenants.pop(key, None)
        if self._scheduler is not None and tenant is not None and since is not None:
            self._scheduler.finish_turn(tenant, self.last_progress_at - since)
        if key in self._dirty:  # it was added again while in process
            self._enqueue(key)
        elif self._scheduler is not None and self._tenant_queues:
            self._wake_one()  # a key may have waited for this slot

    def close(self) -> None:
        """Close the queue: every `take` returns None, and delayed keys are dropped."""
        self._closed, self.last_progress_at = True, self._clock.monotonic()
        for _, timer in self._delayed.values():
            timer.cancel()
        self._delayed.clear()
        while self._waiters:
            self._wake_one()

    def _enqueue_delayed(self, key: ResourceKey) -> None:
        self._delayed.pop(key, None)
        self.add(key)

    def _enqueue(self, key: ResourceKey) -> None:
        tenant = self._tenants.get(key)
        if tenant is None:
            tenant = self._tenants[key] = self._find_tenant(key)
        queue = self._tenant_queues.setdefault(tenant, _TenantQueue())
        if key in self._urgent:
            self._urgent.discard(key)
            queue.urgent[key] = queue.normal.pop(key, self._clock.monotonic())
        elif key not in queue.urgent:
            queue.normal[key] = self._clock.monotonic()
        self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
