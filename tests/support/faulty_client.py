"""A cluster client whose network fails on demand: a call reaches a real cluster or fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from argosy.kube.client import Cluster, WatchEvent
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send

T = TypeVar("T")
Fault = Callable[[str], Exception | None]  # verb → the error to raise instead, or None


class Faulty(ForwardingCluster):
    def __init__(self, cluster: Cluster, fault: Fault = lambda verb: None) -> None:
        super().__init__(cluster)
        self.fault = fault
        self.events_until_cut = 0  # 0: watches are not interrupted
        self.watched_since: list[str] = []

    async def _send(self, call: Call, send: Send[T]) -> T:
        self._fail(call.method)
        return await send()

    async def watch(self, kind: Any, *, since: str, **named: Any) -> AsyncIterator[WatchEvent]:
        self.watched_since.append(since)
        self._fail("watch")
        event_count = 0
        async for event in super().watch(kind, since=since, **named):
            yield event
            event_count += 1
            if event_count == self.events_until_cut:
                return
            self._fail("event")

    def _fail(self, verb: str) -> None:
        if error := self.fault(verb):
            raise error
