"""Logs when an API server stops answering and when it answers again.

In: the outcome of each call of one connection. Out: one log line when the outage starts, and one when it ends.
Never: logs a single failed call; logs once per caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from argosy.kube.client.status_errors import ApiServerUnavailable

log = logging.getLogger(__name__)
OUTAGE_GRACE_SECONDS: Final = 2.0  # seconds: a failover to another API server is not worth a log line


class ReachabilityLog:
    def __init__(self, clock: Callable[[], float] = time.monotonic, grace: float = OUTAGE_GRACE_SECONDS) -> None:
        self._clock, self._grace = clock, grace
        self._outage_started_at: float | None = None  # start of the outage, monotonic; None: the server answers
        self._is_logged = False

    def record_failure(self, error: str, waited_seconds: float = 0.0) -> None:
        """Record a failed call; `waited_seconds` is how many seconds ago the request was sent."""
        now = self._clock()
        self._outage_started_at = now - waited_seconds if self._outage_started_at is None else self._outage_started_at
        if not self._is_logged and now - self._outage_started_at >= self._grace:
            self._is_logged = True
            log.warning("API server does not answer, retrying: error=%s", error)

    def record_answer(self) -> None:
        if self._is_logged and self._outage_started_at is not None:
            log.warning("API server answers again: outage_seconds=%.0f", self._clock() - self._outage_started_at)
        self._outage_started_at, self._is_logged = None, False


def choose_log_level(error: BaseException, default_level: int) -> int:
    """Return the log level for an error: DEBUG if the server does not answer, which is logged once for all callers."""
    return logging.DEBUG if isinstance(error, ApiServerUnavailable) and not error.code else default_level
