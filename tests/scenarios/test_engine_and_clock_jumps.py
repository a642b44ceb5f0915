"""A sync with a wave delay completes although the wall clock is set forward or back meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.engine import Room, config_map, engine_room

pytestmark = pytest.mark.anyio
DAY = 86400.0
WAVE = "argocd.argoproj.io/sync-wave"


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        yield opened_room


def in_wave(name: str, wave: int) -> dict[str, object]:
    manifest = config_map(name, a="one")
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {WAVE: str(wave)}}}


@pytest.mark.parametrize("jump", [-30 * DAY, -3600.0, 3600.0, 30 * DAY])
async def test_wave_delay_ends_after_a_wall_clock_jump(room: Room, jump: float) -> None:
    await room.configure({"sync.waveDelay": "60"}, "argosy-cm")
    room.clock.leap(60 * DAY)
    room.repository.push({"app/a.yaml": in_wave("first", 0), "app/b.yaml": in_wave("second", 1)})
    await room.deliver()
    await room.sync()
    await room.until(lambda status: "operationState" in status and "next wave" in str(status["operationState"]))
    assert await room.get("ConfigMap", "second") is None
    room.clock.set_by(jump)
    room.clock.leap(61)
    state = (await room.until_over())["status"]["operationState"]
    assert state["phase"] == "Succeeded"
    assert await room.get("ConfigMap", "second") is not None
