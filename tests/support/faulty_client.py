"""A cluster client whose network fails on demand: a call reaches a real cluster or fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from argosy.kube.client import Cluster, WatchEvent

Fault = Callable[[str], Exception | None]  # verb → the error to raise instead, or None


class Faulty:
    def __init__(self, cluster: Cluster, fault: Fault = lambda verb: None) -> None:
        self._cluster = cluster
        self.fault = fault
        self.events_until_cut = 0  # 0: watches are not interrupted
        self.watched_since: list[str] = []

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._cluster, verb)

        async def call(*args: Any, **named: Any) -> Any:
            self._fail(verb)
            return await method(*args, **named)

        return call

    async def watch(self, kind: Any, *, since: str, **named: Any) -> AsyncIterator[WatchEvent]:
        self.watched_since.append(since)
        self._fail("watch")
        event_count = 0
        async for event in self._cluster.watch(kind, since=since, **named):
            yield event
            event_count += 1
            if event_count == self.events_until_cut:
                return
            self._fail("event")

    def _fail(self, verb: str) -> None:
        if error := self.fault(verb):
            raise error
