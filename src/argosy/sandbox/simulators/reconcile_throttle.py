"""Limits how often an object that depends on many others is reconciled: the more there are, the longer the interval.

In: a key, the number of objects it depends on, the time. Out: how long to wait. Never: delays an object that depends on
few.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.controller import Clock
from argosy.kube.resource_key import ResourceKey

MIN_PAUSE_SECONDS: Final = 0.02  # shorter pauses are skipped


class ReconcileThrottle:
    """Batches changes: otherwise each of a thousand changes would read all thousand objects.

    The interval is a fixed part plus a part per dependent object, in seconds.
    """

    def __init__(self, base_seconds: float, seconds_per_object: float) -> None:
        self._base_seconds, self._seconds_per_object = base_seconds, seconds_per_object
        self._next_allowed: dict[ResourceKey, float] = {}

    def compute_wait(self, key: ResourceKey, clock: Clock) -> float:
        """Return the seconds until the key may be reconciled, 0 if it may be now."""
        seconds_left = self._next_allowed.get(key, 0.0) - clock.monotonic()
        return seconds_left if seconds_left > 0.0 else 0.0

    def record_reconcile(self, key: ResourceKey, object_count: int, clock: Clock) -> None:
        pause = self._base_seconds + self._seconds_per_object * object_count
        if pause > MIN_PAUSE_SECONDS:
            self._next_allowed[key] = clock.monotonic() + pause
        else:
            self._next_allowed.pop(key, None)

    def forget(self, key: ResourceKey) -> None:
        self._next_allowed.pop(key, None)
