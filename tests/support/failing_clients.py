"""Cluster clients that crash at their n-th write, or fail at random."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from argosy.errors import Conflict, TransientError
from argosy.kube.client import Cluster

WRITES = ("create", "patch", "replace", "delete", "apply")


class Mortal:
    """A cluster client that crashes its controller just before or just after the n-th write."""

    def __init__(self, cluster: Cluster, dies_at: int, *, after: bool) -> None:
        self._cluster, self._dies_at, self._after = cluster, dies_at, after
        self._writes = 0
        self.died = asyncio.Event()

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._cluster, verb)
        return method if verb not in WRITES else self._watched(method)

    def _watched(self, method: Any) -> Any:
        async def call(*args: Any, **named: Any) -> Any:
            if _is_event(args[0]):  # Events may be lost or duplicated
                return await method(*args, **named)
            self._writes += 1
            number = self._writes
            if number < self._dies_at or (number == self._dies_at and self._after):
                answer = await method(*args, **named)
                if number < self._dies_at:
                    return answer
            self.died.set()
            await asyncio.Event().wait()  # a crashed controller does not continue

        return call


def _is_event(about: Any) -> bool:
    return bool(about["kind"] == "Event" if isinstance(about, dict) else about.kind == "Event")


class Moody:
    """A cluster client that sometimes fails, before or after a write."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster, self._random = cluster, random.Random(seed)

    def __getattr__(self, verb: str) -> Any:
        method = getattr(self._cluster, verb)
        if verb not in WRITES:
            return method

        async def call(*args: Any, **named: Any) -> Any:
            mood = self._random.random()
            if mood < 0.1:
                raise TransientError("the network is gone")
            if mood < 0.2:
                raise Conflict("somebody was faster")
            answer = await method(*args, **named)
            if mood < 0.3:
                raise TransientError("the answer is lost")
            return answer

        return call
