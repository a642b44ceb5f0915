"""What has become ours is claimed first, all of it, before anything of it is worked on.

In: keys that are ours since a moment ago. Out: each of them claimed, then given to whoever works. Never: lets a claim
wait behind the work on another key for longer than a few seconds; begins anything once it has been told to end.
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
AT_ONCE: Final = 12  # claims: small writes, of which a server takes many
ATTEMPTS: Final = 4  # then it waits its turn among what is worked on
AGAIN: Final = Backoff(first=0.1, most=0.5, jitter=0.5)
PATIENCE: Final = 3.0  # seconds that others wait for claims, so that a server that refuses them stops nobody

Claim = Callable[[ResourceKey], Awaitable[None]]


class Takeover:
    def __init__(self, claim: Claim, give: Callable[[ResourceKey], None]) -> None:
        """`claim`: once, or an error. `give`: to whoever works, claimed or not: they claim what is not."""
        self._claim, self._give = claim, give
        self._waiting: dict[ResourceKey, None] = {}  # in their order
        self._under_way: set[ResourceKey] = set()
        self._wanted, self._calm = asyncio.Event(), asyncio.Event()
        self._calm.set()
        self._busy_until = 0.0
        self._is_over = False
        self.on_calm: Callable[[], None] = lambda: None

    def is_calm(self) -> bool:
        """Nothing waits for its claim, or for so long that nobody is to wait for that."""
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
        """It is another's."""
        self._waiting.pop(key, None)
        self._look()

    async def turn(self, key: ResourceKey) -> bool:
        """Whether to work on it now, when there was time for claims. If not, it is given later, or nobody works."""
        if not self.is_calm():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._calm.wait(), self._busy_until - time.monotonic())
        return not self._is_over and key not in self._waiting and key not in self._under_way

    async def run(self) -> None:
        """Until cancelled, or closed: from then on nobody's turn comes."""
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
                log.info("%s is not claimed yet: %s", key, error)
            except Exception:  # one that cannot be claimed must not keep the others from it
                log.exception("%s is not claimed", key)
                return None
            await asyncio.sleep(AGAIN.delay(attempt))
        return None

    def _look(self) -> None:
        if not self._waiting and not self._under_way and not self._calm.is_set():
            self._calm.set()
            self.on_calm()
