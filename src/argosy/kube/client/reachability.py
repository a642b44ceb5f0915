"""Logs when an API server stops answering and when it answers again.

In: the outcome of each call of one connection. Out: one log line when the outage starts, and one when it ends.
Never: logs a single failed call; logs once per caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from argosy.kube.client.status_errors import Unavailable

log = logging.getLogger(__name__)
GRACE: Final = 2.0  # seconds: a failover to another API server is not worth a log line


class Contact:
    def __init__(self, clock: Callable[[], float] = time.monotonic, grace: float = GRACE) -> None:
        self._clock, self._grace = clock, grace
        self._since: float | None = None  # start of the outage, monotonic; None: the server answers
        self._is_told = False

    def missed(self, why: str, waited: float = 0.0) -> None:
        """Record a failed call; `waited` is how many seconds ago the request was sent."""
        now = self._clock()
        self._since = now - waited if self._since is None else self._since
        if not self._is_told and now - self._since >= self._grace:
            self._is_told = True
            log.warning("API server does not answer, retrying: error=%s", why)

    def answered(self) -> None:
        if self._is_told and self._since is not None:
            log.warning("API server answers again: outage_seconds=%.0f", self._clock() - self._since)
        self._since, self._is_told = None, False


def loudness(error: BaseException, usual: int) -> int:
    """Return the log level for an error: DEBUG if the server does not answer, which is logged once for all callers."""
    return logging.DEBUG if isinstance(error, Unavailable) and not error.code else usual
