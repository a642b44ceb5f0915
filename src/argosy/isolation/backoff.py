"""Scripts that use up their worker again and again are left alone for longer and longer, for each tenant by itself.

In: a script, and whether its runs failed. Out: why it is not run now, or None. Never: runs anything; lets what one
tenant's objects do to a script keep it from another's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from argosy.fair_share import current_tenant

FIRST_SECONDS, MAX_SECONDS = 60.0, 600.0
MAX_REMEMBERED: Final = 10_000


def backoff_seconds(failures: int, first: float, longest: float) -> float:
    """Seconds to wait after so many failures in a row, counted from 1: they double each time."""
    return float(min(first * 2.0 ** min(failures - 1, 30), longest))


class _Failure(NamedTuple):
    times: int
    until: float
    reason: str


class ScriptBackoff:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures: dict[tuple[str, str], _Failure] = {}

    def reason(self, script: str) -> str | None:
        """Why the script is not to be run for the current tenant now."""
        failure = self._failures.get((current_tenant().name, script))
        return failure.reason if failure is not None and failure.until > self._now() else None

    def failed(self, script: str, reason: str) -> None:
        key = (current_tenant().name, script)
        known = self._failures.pop(key, None)
        times = known.times + 1 if known is not None else 1
        until = self._now() + backoff_seconds(times, FIRST_SECONDS, MAX_SECONDS)
        self._failures[key] = _Failure(times, until, reason)
        if len(self._failures) > MAX_REMEMBERED:
            del self._failures[next(iter(self._failures))]

    def succeeded(self, script: str) -> None:
        self._failures.pop((current_tenant().name, script), None)
