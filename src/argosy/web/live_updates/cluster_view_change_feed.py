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
    from argosy.gitops.cluster_view.cluster_view import ClusterView

MAX_BUFFERED_CHANGES: Final = 1000  # argo: buffered changes per consumer


class CacheChange(NamedTuple):
    old: Manifest | None
    new: Manifest | None

    @property
    def manifest(self) -> Manifest:
        return self.new or self.old or {}

    @property
    def event_type(self) -> str:
        """k8s: type of the watch event."""
        return "DELETED" if self.new is None else "ADDED" if self.old is None else "MODIFIED"


class ChangeFeed:
    def __init__(
        self, cluster_view: ClusterView, is_wanted: Callable[[CacheChange], bool], *, is_merged: bool = False
    ) -> None:
        """`is_merged`: keep only one change until it is taken."""
        self._cluster_view, self._is_wanted, self._is_merged = cluster_view, is_wanted, is_merged
        self._buffer: deque[CacheChange] = deque()
        self._wake_event = asyncio.Event()
        self._stop: Callable[[], None] | None = None
        self.is_late = False

    def __enter__(self) -> Self:
        self._stop = self._cluster_view.add_listener(self._on_change)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _on_change(self, old: Manifest | None, new: Manifest | None) -> None:
        change = CacheChange(old, new)
        if not self._is_wanted(change):
            return
        if self._is_merged and self._buffer:
            return
        if len(self._buffer) >= MAX_BUFFERED_CHANGES:
            self.is_late = True
            self._buffer.clear()
            self.stop()
        else:
            self._buffer.append(change)
        self._wake_event.set()

    async def next(self, timeout_seconds: float | None = None) -> CacheChange | None:
        """Return the next change; None if the feed ended (`is_late`) or the time is over."""
        while not self._buffer:
            if self.is_late:
                return None
            self._wake_event.clear()
            try:
                async with asyncio.timeout(timeout_seconds):
                    await self._wake_event.wait()
            except TimeoutError:
                return None
        return self._buffer.popleft()
