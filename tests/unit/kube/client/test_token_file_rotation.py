"""A service account token file is read again on time, also after the system clock jumps."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from argosy.kube.client.auth import TOKEN_REREAD_INTERVAL_SECONDS, CredentialProvider
from argosy.kube.client.connection_settings import Connection

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("jump", [-30 * 86400.0, -1.0, 0.0, 30 * 86400.0])
async def test_rotated_token_is_reread_after_a_minute_despite_clock_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    file = tmp_path / "token"
    file.write_text("first")
    credentials = CredentialProvider(Connection(server="http://cluster.example", token_file=str(file)))
    assert (await credentials.get_identity()).authorization == "Bearer first"
    file.write_text("second")
    day, passed = time.time() + jump, time.monotonic()
    monkeypatch.setattr(time, "time", lambda: day)
    assert (await credentials.get_identity()).authorization == "Bearer first", "it was read just now"
    monkeypatch.setattr(time, "monotonic", lambda: passed + TOKEN_REREAD_INTERVAL_SECONDS + 1)
    assert (await credentials.get_identity()).authorization == "Bearer second"
