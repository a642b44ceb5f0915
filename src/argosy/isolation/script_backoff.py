"""Exponential backoff for scripts that exhaust their worker, per tenant.

In: a script, and the results of its runs. Out: why it is not run now, or None. Never: runs anything; lets failures of
one tenant block the script for another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from argosy.fair_share import current_tenant

FIRST_SECONDS, MAX_SECONDS = 60.0, 600.0
MAX_REMEMBERED: Final = 10_000


def backoff_seconds(failures: int, first_seconds: float, max_seconds: float) -> float:
    """Return the seconds to wait after this number of consecutive failures, counted from 1; they double each time."""
    return float(min(first_seconds * 2.0 ** min(failures - 1, 30), max_seconds))


class _Failure(NamedTuple):
    times: int
    until: float
    reason: str


class ScriptBackoff:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._failures: dict[tuple[str, str], _Failure] = {}

    def find_block_reason(self, script: str) -> str | None:
        """Return why the script must not run for the current tenant now; None if it may run."""
        failure = self._failures.get((current_tenant().name, script))
        return failure.reason if failure is not None and failure.until > self._now() else None

    def record_failure(self, script: str, reason: str) -> None:
        key = (current_tenant().name, script)
        earlier = self._failures.pop(key, None)
        count = earlier.times + 1 if earlier is not None else 1
        until = self._now() + backoff_seconds(count, FIRST_SECONDS, MAX_SECONDS)
        self._failures[key] = _Failure(count, until, reason)
        if len(self._failures) > MAX_REMEMBERED:
            del self._failures[next(iter(self._failures))]

    def record_success(self, script: str) -> None:
        self._failures.pop((current_tenant().name, script), None)
