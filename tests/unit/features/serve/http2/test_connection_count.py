from __future__ import annotations

import pytest

from argosy.features.serve.http2 import connection_count
from argosy.features.serve.http2.connection_count import LOG_INTERVAL_SECONDS, ConnectionCount


def test_connections_are_limited_in_all_and_per_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS_PER_ADDRESS", 2)
    count = ConnectionCount()
    assert [count.open(address) for address in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    count.close("a")
    assert [count.open(address) for address in ("c", "c")] == [True, False]


def test_trusted_proxies_are_limited_with_all_clients_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS_PER_ADDRESS", 1)
    count = ConnectionCount(lambda address: address == "proxy")
    assert [count.open(address) for address in ("a", "a", "proxy", "proxy", "proxy")] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_refusals_are_logged_once_in_a_while(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(connection_count, "MAX_CONNECTIONS_PER_ADDRESS", 0)
    now = 1000.0
    count = ConnectionCount(clock=lambda: now)
    for _ in range(5):
        assert not count.open("192.0.2.1")
    assert [record.getMessage() for record in caplog.records] == [
        "refused HTTP/2 connections: address=192.0.2.1 refused=1 limit=0 (of one address that is not in server.proxies)"
    ]
    now += LOG_INTERVAL_SECONDS
    assert not count.open("192.0.2.2")
    assert "address=192.0.2.2 refused=5" in caplog.records[1].getMessage()
