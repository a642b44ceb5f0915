"""Change feed: cluster view changes for one consumer.

In: a cluster view and a filter. Out: pairs of old and new objects, in order. Never: buffers more than a limit for a
slow consumer; it is disconnected and must reconnect.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from argosy.kube.objects import Manifest

if TYPE_CHECKING:
    from argosy.gitops.cluster_view.cluster_view import Lookout

MOST: Final = 1000  # argo: buffered changes per consumer


class Change(NamedTuple):
    before: Manifest | None
    after: Manifest | None

    @property
    def manifest(self) -> Manifest:
        return self.after or self.before or {}

    @property
    def word(self) -> str:
        """k8s: type of the watch event."""
        return "DELETED" if self.after is None else "ADDED" if self.before is None else "MODIFIED"


class Changes:
    def __init__(self, lookout: Lookout, is_wanted: Callable[[Change], bool], *, is_merged: bool = False) -> None:
        """`is_merged`: keep only one change until it is taken."""
        self._lookout, self._is_wanted, self._is_merged = lookout, is_wanted, is_merged
        self._waiting: deque[Change] = deque()
        self._woken = asyncio.Event()
        self._stop: Callable[[], None] | None = None
        self.is_late = False

    def __enter__(self) -> Self:
        self._stop = self._lookout.listen(self._noticed)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _noticed(self, before: Manifest | None, after: Manifest | None) -> None:
        change = Change(before, after)
        if not self._is_wanted(change):
            return
        if self._is_merged and self._waiting:
            return
        if len(self._waiting) >= MOST:
            self.is_late = True
            self._waiting.clear()
            self.stop()
        else:
            self._waiting.append(change)
        self._woken.set()

    async def next(self, seconds: float | None = None) -> Change | None:
        """Return the next change; None if the feed ended (`is_late`) or the time is over."""
        while not self._waiting:
            if self.is_late:
                return None
            self._woken.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            except TimeoutError:
                return None
        return self._waiting.popleft()
