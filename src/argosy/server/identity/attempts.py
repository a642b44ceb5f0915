"""How often somebody may guess a password: counted in the cluster, before it is compared.

In: whose password is guessed. Out: whether this guess counts. Never: forgets in a restart; lets a name that nobody has
push out a real one; counts after the fact, for then many at once would all be let through.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from argosy.cluster import Cluster
from argosy.model.errors import Conflict
from argosy.model.manifest import Manifest
from argosy.model.names import ResourceKey
from argosy.runtime.clock import SYSTEM_CLOCK, Clock

NAME: Final = "argosy-login-attempts"
MOST: Final = 5  # argo: failures
WINDOW: Final = 300.0  # argo: seconds
UNKNOWN: Final = "_unknown"  # all names that nobody has share one; no account can be called so
ATTEMPTS: Final = 12  # to write what another server writes at the same time
MOMENT: Final = 0.005  # seconds
FRESH: Final = 1.0  # seconds for which what was read is believed, where it refuses


class Guess(NamedTuple):
    """A guess that counts, and may be taken back where it was none."""

    whose: str
    mark: str


class Attempts:
    def __init__(self, cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ResourceKey("", "ConfigMap", namespace, NAME)
        self._turn = asyncio.Lock()
        self._full: dict[str, tuple[float, list[str]]] = {}  # when it was read, and what; only where it refuses

    async def reserve(self, whose: str) -> Guess | None:
        """None: it is not to be compared."""
        async with self._turn:
            if self._is_known_full(whose):
                return None
            for attempt in range(ATTEMPTS):
                await asyncio.sleep(MOMENT * attempt)
                found = await self._cluster.get(self._key)
                marks = self._marks(found, whose)
                if len(marks) >= MOST:
                    self._full[whose] = (self._clock.monotonic(), marks)
                    return None
                mark = f"{self._now():.3f}"
                if await self._write(found, whose, [*marks, mark]):
                    return Guess(whose, mark)
            return None  # others are at it too: who is not counted is not compared

    async def forgive(self, guess: Guess) -> None:
        """It was right. What others guessed before stays counted."""
        async with self._turn:
            for attempt in range(ATTEMPTS):
                await asyncio.sleep(MOMENT * attempt)
                found = await self._cluster.get(self._key)
                marks = self._marks(found, guess.whose)
                if guess.mark not in marks:
                    return
                marks.remove(guess.mark)
                if await self._write(found, guess.whose, marks):
                    self._full.pop(guess.whose, None)
                    return

    def _is_known_full(self, whose: str) -> bool:
        at, marks = self._full.get(whose, (0.0, []))
        if not marks or self._clock.monotonic() - at > FRESH:
            return False
        return len(self._recent(marks)) >= MOST

    def _marks(self, found: Manifest | None, whose: str) -> list[str]:
        data = (found or {}).get("data") or {}
        return self._recent(str(data.get(whose) or "").split())

    def _recent(self, marks: list[str]) -> list[str]:
        return [mark for mark in marks if _seconds(mark) > self._now() - WINDOW]

    async def _write(self, found: Manifest | None, whose: str, marks: list[str]) -> bool:
        """False: somebody else was first, and it must be read again."""
        data = {whose: " ".join(marks) or None}
        metadata = {"name": NAME, "namespace": self._key.namespace}
        try:
            if found is None:
                await self._cluster.create(
                    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {whose: " ".join(marks)}}
                )
            else:
                version = found["metadata"]["resourceVersion"]
                await self._cluster.patch(self._key, {"metadata": {"resourceVersion": version}, "data": data})
        except Conflict:
            return False
        return True

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _seconds(mark: str) -> float:
    """What cannot be read counts as now: nobody gains by writing nonsense there."""
    try:
        return float(mark)
    except ValueError:
        return float("inf")
