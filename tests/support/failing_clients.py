"""Cluster clients that crash at their n-th write, or fail at random."""

from __future__ import annotations

import asyncio
import random
from typing import TypeVar

from argosy.errors import Conflict, TransientError
from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import WRITE_METHODS, Call, ForwardingCluster, Send

T = TypeVar("T")


class Mortal(ForwardingCluster):
    """A cluster client that crashes its controller just before or just after the n-th write."""

    def __init__(self, cluster: Cluster, dies_at: int, *, after: bool) -> None:
        super().__init__(cluster)
        self._dies_at, self._after = dies_at, after
        self._writes = 0
        self.died = asyncio.Event()

    async def _send(self, call: Call, send: Send[T]) -> T:
        if call.method not in WRITE_METHODS or call.kind.kind == "Event":  # Events may be lost or duplicated
            return await send()
        self._writes += 1
        number = self._writes
        if number < self._dies_at or (number == self._dies_at and self._after):
            answer = await send()
            if number < self._dies_at:
                return answer
        self.died.set()
        await asyncio.Event().wait()  # a crashed controller does not continue
        raise AssertionError


class Moody(ForwardingCluster):
    """A cluster client that sometimes fails, before or after a write."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        super().__init__(cluster)
        self._random = random.Random(seed)

    async def _send(self, call: Call, send: Send[T]) -> T:
        if call.method not in WRITE_METHODS:
            return await send()
        mood = self._random.random()
        if mood < 0.1:
            raise TransientError("the network is gone")
        if mood < 0.2:
            raise Conflict("somebody was faster")
        answer = await send()
        if mood < 0.3:
            raise TransientError("the answer is lost")
        return answer
