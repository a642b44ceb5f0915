"""Claims all Applications that a replica gained, before it reconciles any of them.

In: keys that this replica owns since a moment ago. Out: each key claimed, then put on the work queue. Never: delays a
claim behind the reconciliation of another key for more than a few seconds; starts anything after it was closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from argosy.errors import ArgosyError
from argosy.kube.controller.clock import Backoff
from argosy.kube.names import ResourceKey

log = logging.getLogger(__name__)
AT_ONCE: Final = 12  # claims are small writes
ATTEMPTS: Final = 4  # then its own pass claims it
AGAIN: Final = Backoff(first=0.1, most=0.5, jitter=0.5)
PATIENCE: Final = 3.0  # passes wait so long for claims, so that a server that refuses them blocks nothing

Claim = Callable[[ResourceKey], Awaitable[None]]


class Takeover:
    def __init__(self, claim: Claim, give: Callable[[ResourceKey], None]) -> None:
        """`claim` claims once or raises. `enqueue` adds the key to the work queue, whose pass claims it if need be."""
        self._claim, self._give = claim, give
        self._waiting: dict[ResourceKey, None] = {}  # in insertion order
        self._under_way: set[ResourceKey] = set()
        self._wanted, self._calm = asyncio.Event(), asyncio.Event()
        self._calm.set()
        self._busy_until = 0.0
        self._is_over = False
        self.on_calm: Callable[[], None] = lambda: None

    def is_calm(self) -> bool:
        """True if no claim is pending, or if claims have been pending for too long to wait for them."""
        return self._calm.is_set() or time.monotonic() > self._busy_until

    def add(self, keys: Iterable[ResourceKey]) -> None:
        if self._is_over:
            return
        self._waiting.update(dict.fromkeys(keys))
        if not self._waiting:
            return
        self._wanted.set()
        if self._calm.is_set():
            self._calm.clear()
            self._busy_until = time.monotonic() + PATIENCE

    def drop(self, key: ResourceKey) -> None:
        """Remove a key that another replica owns."""
        self._waiting.pop(key, None)
        self._look()

    async def turn(self, key: ResourceKey) -> bool:
        """Wait for pending claims; return True if the key may be reconciled now. Otherwise it is enqueued later."""
        if not self.is_calm():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._calm.wait(), self._busy_until - time.monotonic())
        return not self._is_over and key not in self._waiting and key not in self._under_way

    async def run(self) -> None:
        """Claim until cancelled or closed; after that no key may be reconciled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(AT_ONCE):
                    tasks.create_task(self._work())
        finally:
            self.close()

    def close(self) -> None:
        self._is_over = True
        self._waiting.clear()
        self._calm.set()

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._wanted.clear()
                await self._wanted.wait()
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._under_way.add(key)
            try:
                await self._try(key)
            finally:
                self._under_way.discard(key)
                self._look()
            if key not in self._waiting:
                self._give(key)

    async def _try(self, key: ResourceKey) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._claim(key)
            except ArgosyError as error:
                log.info("claim failed, trying again: app=%s error=%s", key, error)
            except Exception:  # a failed claim must not stop the others
                log.exception("claim failed: app=%s", key)
                return None
            await asyncio.sleep(AGAIN.delay(attempt))
        return None

    def _look(self) -> None:
        if not self._waiting and not self._under_way and not self._calm.is_set():
            self._calm.set()
            self.on_calm()
