"""Limits the open HTTP/2 connections, of all clients and of one address.

In: addresses of clients. Out: whether one more connection is accepted; a log line if not. Never: keeps an address
without a connection; limits a trusted proxy by its address, because all clients behind it have that one.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

log = logging.getLogger(__name__)
MAX_CONNECTIONS: Final = 1000
MAX_CONNECTIONS_PER_ADDRESS: Final = 200
LOG_INTERVAL_SECONDS: Final = 60.0  # refusals between two log lines are counted


def _is_no_proxy(address: str) -> bool:
    return False


class ConnectionCount:
    def __init__(
        self,
        is_trusted_proxy: Callable[[str], bool] = _is_no_proxy,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_trusted_proxy, self._clock = is_trusted_proxy, clock
        self._by_address: Counter[str] = Counter()
        self._refusals = 0  # since the last log line
        self._logged_at = -LOG_INTERVAL_SECONDS

    def open(self, address: str) -> bool:
        """Count a connection, unless there are too many. If it is counted, it must be closed once."""
        if self._by_address.total() >= MAX_CONNECTIONS:
            self._log_refusal(address, MAX_CONNECTIONS, "of all clients")
            return False
        if self._by_address[address] >= MAX_CONNECTIONS_PER_ADDRESS and not self._is_trusted_proxy(address):
            self._log_refusal(address, MAX_CONNECTIONS_PER_ADDRESS, "of one address that is not in server.proxies")
            return False
        self._by_address[address] += 1
        return True

    def close(self, address: str) -> None:
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]

    def _log_refusal(self, address: str, maximum: int, scope: str) -> None:
        self._refusals += 1
        if (now := self._clock()) - self._logged_at < LOG_INTERVAL_SECONDS:
            return
        message = "refused HTTP/2 connections: address=%s refused=%d limit=%d (%s)"
        log.warning(message, address, self._refusals, maximum, scope)
        self._refusals, self._logged_at = 0, now
