"""Fixtures of the controller tests: they run on the embedded cluster with manual clocks and injected faults."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from argosy.kube.client import Cluster
from support.deadlines import wait_until_async


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    created = await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "runtime-"}})
    return str(created["metadata"]["name"])


class ManualClock:
    """Clock that advances only when a test moves it."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        self._start, self._time = start, 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, ManualTimer]] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._time)

    def monotonic(self) -> float:
        return self._time

    def call_later(self, seconds: float, callback: Callable[[], None]) -> ManualTimer:
        timer = ManualTimer(callback)
        heapq.heappush(self._timers, (self._time + seconds, next(self._order), timer))
        return timer

    def advance(self, seconds: float) -> None:
        until = self._time + seconds
        while self._timers and self._timers[0][0] <= until:
            self._time, _, timer = heapq.heappop(self._timers)
            timer.callback()
        self._time = until

    def set_by(self, seconds: float) -> None:
        """Change the time of day only; monotonic time and timers are not affected."""
        self._start += timedelta(seconds=seconds)

    def waits(self) -> list[float]:
        """Return the remaining seconds of each pending timer, sorted."""
        return sorted(due - self._time for due, _, timer in self._timers if not timer.cancelled)


class ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback, self.cancelled = callback, False

    def cancel(self) -> None:
        self.cancelled, self.callback = True, lambda: None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def make_clock() -> type[ManualClock]:
    return ManualClock


@pytest.fixture
def eventually() -> Callable[[Callable[[], object]], Awaitable[None]]:
    async def wait(true: Callable[[], object]) -> None:
        await wait_until_async(true)

    return wait
