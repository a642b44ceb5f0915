from __future__ import annotations

import pytest

from argosy.features.serve.http2 import connection_count
from argosy.features.serve.http2.connection_count import ConnectionCount


def test_connections_are_limited_in_all_and_per_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS_PER_ADDRESS", 2)
    count = ConnectionCount()
    assert [count.open(address) for address in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    count.close("a")
    assert [count.open(address) for address in ("c", "c")] == [True, False]
