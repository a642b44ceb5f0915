"""Whom to leave alone for a while: receivers that could not be reached, or asked for time.

In: an object, a destination, the settings that were used. Out: seconds. Never: waits itself; holds back after the
settings have changed, for whoever changed them wants to see.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from argosy.features.notifications.settings_cache import Versions
from argosy.features.notifications.subscriptions import Destination
from argosy.kube.controller import Backoff
from argosy.kube.names import ResourceKey

BACKOFF: Final = Backoff(first=10.0, most=300.0)
MOST: Final = 10_000  # that are remembered


class _Trouble(NamedTuple):
    failures: int
    until: float  # as the monotonic clock has it
    versions: Versions


class Patience:
    """Kept apart from the queue's own: each claim changes the object, which wakes it at once."""

    def __init__(self) -> None:
        self._troubles: dict[tuple[ResourceKey, Destination], _Trouble] = {}

    def failed(self, key: ResourceKey, destination: Destination, versions: Versions, now: float) -> tuple[int, float]:
        """How often in a row by now, and for how many seconds nobody asks again."""
        known = self._troubles.get((key, destination))
        failures = known.failures + 1 if known and known.versions == versions else 1
        wait = BACKOFF.delay(failures)
        if len(self._troubles) > MOST:
            self._troubles.clear()
        self._troubles[key, destination] = _Trouble(failures, now + wait, versions)
        return failures, wait

    def left(self, key: ResourceKey, destination: Destination, versions: Versions, now: float) -> float:
        """Seconds until it may be asked again; 0 where it may be now."""
        known = self._troubles.get((key, destination))
        return max(known.until - now, 0.0) if known and known.versions == versions else 0.0

    def answered(self, key: ResourceKey, destination: Destination) -> None:
        self._troubles.pop((key, destination), None)
