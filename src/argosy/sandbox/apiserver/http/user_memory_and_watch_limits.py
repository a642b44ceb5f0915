"""Per-user limits on unread responses (bytes in memory) and on open watches.

In: a user, and a number of bytes. Out: a context manager, or TooManyRequests. Never: knows of a connection.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

from argosy.kube.client import User
from argosy.sandbox.apiserver import status_errors

MAX_BUFFERED_BYTES = 256 << 20
WATCH_RETRY_SECONDS = 5
EXEMPT_GROUP = "system:masters"  # k8s: priority and fairness does not count its requests


class WriteBudget:
    """Bytes of responses that their clients have not read yet. A user may hold half of what the others leave.

    So one user never holds more than half of the total, and there is always space for another user.
    """

    def __init__(self, total: int = MAX_BUFFERED_BYTES) -> None:
        self._total = total
        self._by_user: Counter[str] = Counter()
        self.used_bytes = 0

    def get_used_by(self, user: str) -> int:
        return self._by_user[user]

    @contextlib.contextmanager
    def hold(self, user: str, size: int) -> Iterator[None]:
        """Count `size` bytes while the block runs. Raises TooManyRequests if they exceed the user's share."""
        held = self._by_user[user]
        # A user who holds nothing may get one response of any size: otherwise a larger list could never be read.
        if held and held + size > (self._total - self.used_bytes + held) // 2:
            raise status_errors.too_many_requests()
        self.used_bytes += size
        self._by_user[user] += size
        try:
            yield
        finally:
            self.used_bytes -= size
            self._by_user[user] -= size
            if not self._by_user[user]:
                del self._by_user[user]


class WatchLimit:
    """Limits the open watches of each user. Members of system:masters are not limited."""

    def __init__(self, max_per_user: int) -> None:
        self._max_per_user = max_per_user
        self._open: Counter[str] = Counter()

    @contextlib.contextmanager
    def count(self, user: User) -> Iterator[None]:
        if self._open[user.name] >= self._max_per_user and EXEMPT_GROUP not in user.groups:
            raise status_errors.too_many_watches(user.name, self._max_per_user, retry_seconds=WATCH_RETRY_SECONDS)
        self._open[user.name] += 1
        try:
            yield
        finally:
            self._open[user.name] -= 1
            if not self._open[user.name]:
                del self._open[user.name]
