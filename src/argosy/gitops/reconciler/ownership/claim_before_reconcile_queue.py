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
from argosy.kube.resource_key import ResourceKey

log = logging.getLogger(__name__)
MAX_CONCURRENT_CLAIMS: Final = 12  # claims are small writes
MAX_CLAIM_ATTEMPTS: Final = 4  # then its own pass claims it
CLAIM_BACKOFF: Final = Backoff(first_seconds=0.1, max_seconds=0.5, jitter=0.5)
MAX_CLAIM_WAIT_SECONDS: Final = 3.0  # passes wait so long for claims, so that a server that refuses them blocks nothing

Claim = Callable[[ResourceKey], Awaitable[None]]


class ClaimQueue:
    def __init__(self, claim: Claim, enqueue: Callable[[ResourceKey], None]) -> None:
        """`claim` claims once or raises. `enqueue` adds the key to the work queue, whose pass claims it if need be."""
        self._claim, self._enqueue = claim, enqueue
        self._waiting: dict[ResourceKey, None] = {}  # in insertion order
        self._in_progress: set[ResourceKey] = set()
        self._has_work, self._drained = asyncio.Event(), asyncio.Event()
        self._drained.set()
        self._wait_until = 0.0
        self._is_closed = False
        self.on_drained: Callable[[], None] = lambda: None

    def is_drained(self) -> bool:
        """True if no claim is pending, or if claims have been pending for too long to wait for them."""
        return self._drained.is_set() or time.monotonic() > self._wait_until

    def add(self, keys: Iterable[ResourceKey]) -> None:
        if self._is_closed:
            return
        self._waiting.update(dict.fromkeys(keys))
        if not self._waiting:
            return
        self._has_work.set()
        if self._drained.is_set():
            self._drained.clear()
            self._wait_until = time.monotonic() + MAX_CLAIM_WAIT_SECONDS

    def remove(self, key: ResourceKey) -> None:
        """Remove a key that another replica owns."""
        self._waiting.pop(key, None)
        self._update_drained()

    async def wait_for_turn(self, key: ResourceKey) -> bool:
        """Wait for pending claims; return True if the key may be reconciled now. Otherwise it is enqueued later."""
        if not self.is_drained():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), self._wait_until - time.monotonic())
        return not self._is_closed and key not in self._waiting and key not in self._in_progress

    async def run(self) -> None:
        """Claim until cancelled or closed; after that no key may be reconciled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(MAX_CONCURRENT_CLAIMS):
                    tasks.create_task(self._claim_from_queue())
        finally:
            self.close()

    def close(self) -> None:
        self._is_closed = True
        self._waiting.clear()
        self._drained.set()

    async def _claim_from_queue(self) -> None:
        while True:
            while not self._waiting:
                self._has_work.clear()
                await self._has_work.wait()
            key = next(iter(self._waiting))
            del self._waiting[key]
            self._in_progress.add(key)
            try:
                await self._claim_with_retries(key)
            finally:
                self._in_progress.discard(key)
                self._update_drained()
            if key not in self._waiting:
                self._enqueue(key)

    async def _claim_with_retries(self, key: ResourceKey) -> None:
        for attempt in range(1, MAX_CLAIM_ATTEMPTS + 1):
            try:
                return await self._claim(key)
            except ArgosyError as error:
                log.info("claim failed, trying again: app=%s error=%s", key, error)
            except Exception:  # a failed claim must not stop the others
                log.exception("claim failed: app=%s", key)
                return None
            await asyncio.sleep(CLAIM_BACKOFF.delay(attempt))
        return None

    def _update_drained(self) -> None:
        if not self._waiting and not self._in_progress and not self._drained.is_set():
            self._drained.set()
            self.on_drained()
