"""Whether an API server answers, as everybody finds who asks it over one connection.

In: how each call ended. Out: one line of the log when it stops to answer, and one when it answers again. Never: a line
about a single call that was lost; one for each who asks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from argosy.kube.client.status_errors import Unavailable

log = logging.getLogger(__name__)
GRACE: Final = 2.0  # seconds: one that is replaced by its neighbour is no news


class Contact:
    def __init__(self, clock: Callable[[], float] = time.monotonic, grace: float = GRACE) -> None:
        self._clock, self._grace = clock, grace
        self._since: float | None = None  # nobody was answered since
        self._is_told = False

    def missed(self, why: str, waited: float = 0.0) -> None:
        """`waited`: so many seconds ago it was asked."""
        now = self._clock()
        self._since = now - waited if self._since is None else self._since
        if not self._is_told and now - self._since >= self._grace:
            self._is_told = True
            log.warning("the API server does not answer: %s; it is asked again until it does", why)

    def answered(self) -> None:
        if self._is_told and self._since is not None:
            log.warning("the API server answers again, after %.0f s", self._clock() - self._since)
        self._since, self._is_told = None, False


def loudness(error: BaseException, usual: int) -> int:
    """Of a line about this error: that nobody answers is told once for all who ask."""
    return logging.DEBUG if isinstance(error, Unavailable) and not error.code else usual
