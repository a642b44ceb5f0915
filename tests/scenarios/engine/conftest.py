"""Every scenario of the engine runs in this process, and again over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine_room import FLAVOURS, Room, engine_room


@pytest.fixture(params=FLAVOURS)
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path, flavour=request.param) as found:
        yield found
