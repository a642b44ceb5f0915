"""Backoff for receivers that are unreachable or rate-limit us.

In: an object, a destination, the version of the settings. Out: seconds. Never: sleeps; delays after the settings
changed, because the user wants to see the effect.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from argosy.features.notifications.settings_cache import Versions
from argosy.features.notifications.subscriptions import Destination
from argosy.kube.controller import Backoff
from argosy.kube.names import ResourceKey

BACKOFF: Final = Backoff(first=10.0, most=300.0)
MOST: Final = 10_000  # entries kept


class _Trouble(NamedTuple):
    failures: int
    until: float  # monotonic seconds
    versions: Versions


class Patience:
    """Backoff per object and destination. The work queue's backoff is useless here: each claim requeues the object."""

    def __init__(self) -> None:
        self._troubles: dict[tuple[ResourceKey, Destination], _Trouble] = {}

    def failed(self, key: ResourceKey, destination: Destination, versions: Versions, now: float) -> tuple[int, float]:
        """Record a failure; return the number of consecutive failures and the delay in seconds."""
        known = self._troubles.get((key, destination))
        failures = known.failures + 1 if known and known.versions == versions else 1
        wait = BACKOFF.delay(failures)
        if len(self._troubles) > MOST:
            self._troubles.clear()
        self._troubles[key, destination] = _Trouble(failures, now + wait, versions)
        return failures, wait

    def left(self, key: ResourceKey, destination: Destination, versions: Versions, now: float) -> float:
        """Return the seconds until the next attempt is allowed; 0 if it is allowed now."""
        known = self._troubles.get((key, destination))
        return max(known.until - now, 0.0) if known and known.versions == versions else 0.0

    def answered(self, key: ResourceKey, destination: Destination) -> None:
        self._troubles.pop((key, destination), None)
