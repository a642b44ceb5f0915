"""Limits how often an object that depends on many others is reconciled: the more there are, the longer the interval.

In: a key, the number of objects it depends on, the time. Out: how long to wait. Never: delays an object that depends on
few.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.controller import Clock
from argosy.kube.names import ResourceKey

LEAST: Final = 0.02  # shorter pauses are skipped


class Pace:
    """Batches changes: otherwise each of a thousand changes would read all thousand objects.

    The interval is a fixed part plus a part per dependent object, in seconds.
    """

    def __init__(self, first: float, each: float) -> None:
        self._first, self._each = first, each
        self._next: dict[ResourceKey, float] = {}

    def wait(self, key: ResourceKey, clock: Clock) -> float:
        """Return the seconds until the key may be reconciled, 0 if it may be now."""
        left = self._next.get(key, 0.0) - clock.monotonic()
        return left if left > 0.0 else 0.0

    def looked(self, key: ResourceKey, count: int, clock: Clock) -> None:
        pause = self._first + self._each * count
        if pause > LEAST:
            self._next[key] = clock.monotonic() + pause
        else:
            self._next.pop(key, None)

    def forget(self, key: ResourceKey) -> None:
        self._next.pop(key, None)
