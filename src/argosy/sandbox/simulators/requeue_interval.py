"""How often something is looked at that is about many others: the more there are, the less often.

In: a key, how many there were, the time. Out: how long to wait. Never: lets anything wait that is about a few.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.controller import Clock
from argosy.kube.names import ResourceKey

LEAST: Final = 0.02  # seconds that are not worth a wait


class Pace:
    """What comes in a crowd is looked at together: else each of a thousand would be a look at all thousand."""

    def __init__(self, first: float, each: float) -> None:
        self._first, self._each = first, each
        self._next: dict[ResourceKey, float] = {}

    def wait(self, key: ResourceKey, clock: Clock) -> float:
        """0: it may be looked at now."""
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
