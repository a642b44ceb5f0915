"""How often somebody may guess a password: counted in the cluster, before it is compared.

In: whose password is guessed, and from which address. Out: whether this guess counts. Never: forgets in a restart; lets
a name that nobody has push out a real one, or one address shut out all others; counts after the fact, for then many at
once would all be let through.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Container, Mapping
from math import isinf
from typing import Final, NamedTuple

from argosy.errors import Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

NAME: Final = "argosy-login-attempts"
MOST: Final = 5  # argo: failures
MOST_OF_ONE: Final = 4  # of them, of one address: who comes from elsewhere has one left
WINDOW: Final = 300.0  # argo: seconds
REMEMBERED: Final = 30 * 86400.0  # seconds for which an address that an account signed in from is its own
AGAIN: Final = 86400.0  # seconds after which that is written again
ACCOUNT, AT, HOME, STRANGERS = "account.", "at.", "home.", "strangers"  # what keys begin with
UNKNOWN: Final = ""  # all names that nobody has share one
ATTEMPTS: Final = 12  # to write what another server writes at the same time
MOMENT: Final = 0.005  # seconds
MOST_KNOWN: Final = 1_000
FRESH: Final = 1.0  # seconds for which what was read is believed, where it refuses


class Guess(NamedTuple):
    """A guess that counts, and may be taken back where it was none."""

    counts: tuple[str, ...]
    mark: str
    place: str  # where it comes from


class _Count(NamedTuple):
    key: str
    most: int


class Attempts:
    def __init__(self, cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ResourceKey("", "ConfigMap", namespace, NAME)
        self._turn = asyncio.Lock()
        self._full: dict[tuple[str, str], tuple[float, list[str]]] = {}  # when it was read, and what; if it refuses

    async def reserve(self, whose: str, peer: str = "") -> Guess | None:
        """None: it is not to be compared."""
        async with self._turn:
            if self._is_known_full(whose, peer):
                return None
            place = _place(whose, peer) if whose and peer else ""
            for attempt in range(ATTEMPTS):
                await asyncio.sleep(MOMENT * attempt)
                found = await self._cluster.get(self._key)
                counts = self._counts(found, whose, place)
                if full := next((each for each in counts if len(self._marks(found, each.key)) >= each.most), None):
                    if len(self._full) >= MOST_KNOWN:
                        self._full.clear()
                    self._full[whose, peer] = (self._clock.monotonic(), self._marks(found, full.key)[-full.most :])
                    return None
                mark = f"{self._now():.3f}"
                data = {each.key: [*self._marks(found, each.key), mark] for each in counts}
                if await self._write(found, data):
                    return Guess(tuple(data), mark, place)
            return None  # others are at it too: who is not counted is not compared

    async def forgive(self, guess: Guess) -> None:
        """It was right. What others guessed before stays counted; from now on the place is the account's own."""
        async with self._turn:
            for attempt in range(ATTEMPTS):
                await asyncio.sleep(MOMENT * attempt)
                found = await self._cluster.get(self._key)
                data = {key: self._marks(found, key) for key in guess.counts}
                for marks in data.values():
                    if guess.mark in marks:
                        marks.remove(guess.mark)
                if guess.place and not self._is_home(found, guess.place, AGAIN):
                    data[f"{HOME}{guess.place}"] = [guess.mark]
                if await self._write(found, data):
                    self._full.clear()
                    return

    def _counts(self, found: Manifest | None, whose: str, place: str) -> tuple[_Count, ...]:
        """Where an account has signed in before it has a count of its own: nobody elsewhere can shut it out there."""
        if not place:
            return (_Count(f"{ACCOUNT}{whose}" if whose else STRANGERS, MOST),)
        if self._is_home(found, place, REMEMBERED):
            return (_Count(f"{AT}{place}", MOST),)
        return (_Count(f"{ACCOUNT}{whose}", MOST), _Count(f"{AT}{place}", MOST_OF_ONE))

    def _is_home(self, found: Manifest | None, place: str, seconds: float) -> bool:
        data = (found or {}).get("data") or {}
        return _seconds(str(data.get(f"{HOME}{place}") or "0"), unreadable=0.0) > self._now() - seconds

    def _is_known_full(self, whose: str, peer: str) -> bool:
        """What was read a moment ago refuses as long as none of it is forgotten."""
        at, marks = self._full.get((whose, peer), (0.0, []))
        if not marks or self._clock.monotonic() - at > FRESH:
            self._full.pop((whose, peer), None)
            return False
        return len(self._recent(marks)) == len(marks)

    def _marks(self, found: Manifest | None, key: str) -> list[str]:
        data = (found or {}).get("data") or {}
        return self._recent(str(data.get(key) or "").split())

    def _recent(self, marks: list[str]) -> list[str]:
        """A mark from the future was made before the clock was set back, and would count until it has caught up."""
        now = self._now()
        return [mark for mark in marks if now - WINDOW < (at := _seconds(mark)) and (at <= now + WINDOW or isinf(at))]

    async def _write(self, found: Manifest | None, marks: Mapping[str, list[str]]) -> bool:
        """False: somebody else was first, and it must be read again."""
        data = {key: " ".join(each) or None for key, each in marks.items()} | self._stale(found, marks)
        metadata = {"name": NAME, "namespace": self._key.namespace}
        try:
            if found is None:
                kept = {key: text for key, text in data.items() if text}
                made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": kept}
                await self._cluster.create(made)
            else:
                version = found["metadata"]["resourceVersion"]
                await self._cluster.patch(self._key, {"metadata": {"resourceVersion": version}, "data": data})
        except Conflict:
            return False
        return True

    def _stale(self, found: Manifest | None, but: Container[str]) -> dict[str, None]:
        """Places of which nothing counts any more: else they would become ever more."""
        gone: dict[str, None] = {}
        for key in (found or {}).get("data") or {}:
            is_old = key.startswith(AT) and not self._marks(found, key)
            is_left = key.startswith(HOME) and not self._is_home(found, key.removeprefix(HOME), REMEMBERED)
            if key not in but and (is_old or is_left):
                gone[key] = None
        return gone

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _seconds(mark: str, unreadable: float = float("inf")) -> float:
    """What cannot be read counts as now: nobody gains by writing nonsense there."""
    try:
        return float(mark)
    except ValueError:
        return unreadable


def _place(whose: str, peer: str) -> str:
    """An account at an address, as a key of a ConfigMap may be."""
    return hashlib.sha256(f"{whose}\0{peer}".encode()).hexdigest()[:32]
