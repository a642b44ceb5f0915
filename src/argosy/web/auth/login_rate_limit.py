"""Login rate limit: counts password attempts in the cluster before the password is compared.

In: an account and a client address. Out: whether this attempt may be compared. Never: resets on a restart; lets unknown
names displace a real account, or one address lock out all others; counts after the comparison, because concurrent
attempts would all pass.
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
MOST_OF_ONE: Final = 4  # of them, per address, so that other addresses keep one attempt
WINDOW: Final = 300.0  # argo: seconds
REMEMBERED: Final = 30 * 86400.0  # seconds for which an address stays known after the account signed in from it
AGAIN: Final = 86400.0  # seconds after which that is written again
ACCOUNT, AT, HOME, STRANGERS = "account.", "at.", "home.", "strangers"  # key prefixes in the ConfigMap
UNKNOWN: Final = ""  # shared by all unknown names
ATTEMPTS: Final = 12  # on write conflicts with other servers
MOMENT: Final = 0.005  # seconds
MOST_KNOWN: Final = 1_000
FRESH: Final = 1.0  # seconds for which a cached refusal is used


class Guess(NamedTuple):
    """A counted attempt; it can be taken back if the password was right."""

    counts: tuple[str, ...]
    mark: str
    place: str  # hash of account and address


class _Count(NamedTuple):
    key: str
    most: int


class Attempts:
    def __init__(self, cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._cluster, self._clock = cluster, clock
        self._key = ResourceKey("", "ConfigMap", namespace, NAME)
        self._turn = asyncio.Lock()
        self._full: dict[tuple[str, str], tuple[float, list[str]]] = {}  # refusals: time of the read, and attempts

    async def reserve(self, whose: str, peer: str = "") -> Guess | None:
        """Count an attempt. None: refused, do not compare the password."""
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
            return None  # too many write conflicts: an attempt that is not counted is not compared

    async def forgive(self, guess: Guess) -> None:
        """Take back a correct attempt and remember the address as known. Attempts by others stay counted."""
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
        """Known addresses of an account have a separate limit, so that nobody can lock it out there."""
        if not place:
            return (_Count(f"{ACCOUNT}{whose}" if whose else STRANGERS, MOST),)
        if self._is_home(found, place, REMEMBERED):
            return (_Count(f"{AT}{place}", MOST),)
        return (_Count(f"{ACCOUNT}{whose}", MOST), _Count(f"{AT}{place}", MOST_OF_ONE))

    def _is_home(self, found: Manifest | None, place: str, seconds: float) -> bool:
        data = (found or {}).get("data") or {}
        return _seconds(str(data.get(f"{HOME}{place}") or "0"), unreadable=0.0) > self._now() - seconds

    def _is_known_full(self, whose: str, peer: str) -> bool:
        """True if a recent read refused, and none of its attempts has expired since."""
        at, marks = self._full.get((whose, peer), (0.0, []))
        if not marks or self._clock.monotonic() - at > FRESH:
            self._full.pop((whose, peer), None)
            return False
        return len(self._recent(marks)) == len(marks)

    def _marks(self, found: Manifest | None, key: str) -> list[str]:
        data = (found or {}).get("data") or {}
        return self._recent(str(data.get(key) or "").split())

    def _recent(self, marks: list[str]) -> list[str]:
        """Drop old attempts, and attempts in the future: they predate a clock change and would count too long."""
        now = self._now()
        return [mark for mark in marks if now - WINDOW < (at := _seconds(mark)) and (at <= now + WINDOW or isinf(at))]

    async def _write(self, found: Manifest | None, marks: Mapping[str, list[str]]) -> bool:
        """Write attempts. False: a write conflict; read again."""
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
        """Return expired per-address keys, so that the ConfigMap does not grow forever."""
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
    """Parse a time. Invalid text counts as now, so that writing invalid data gains nothing."""
    try:
        return float(mark)
    except ValueError:
        return unreadable


def _place(whose: str, peer: str) -> str:
    """Return account and address as a valid ConfigMap key."""
    return hashlib.sha256(f"{whose}\0{peer}".encode()).hexdigest()[:32]
