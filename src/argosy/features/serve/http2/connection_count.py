"""Limits the open HTTP/2 connections, of all clients and of one address.

In: addresses of clients. Out: whether one more connection is accepted. Never: keeps an address without a connection.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

MAX_CONNECTIONS: Final = 1000
MAX_CONNECTIONS_PER_ADDRESS: Final = 200


class ConnectionCount:
    def __init__(self) -> None:
        self._by_address: Counter[str] = Counter()

    def open(self, address: str) -> bool:
        """Count a connection, unless there are too many. If it is counted, it must be closed once."""
        if self._by_address.total() >= MAX_CONNECTIONS or self._by_address[address] >= MAX_CONNECTIONS_PER_ADDRESS:
            return False
        self._by_address[address] += 1
        return True

    def close(self, address: str) -> None:
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
