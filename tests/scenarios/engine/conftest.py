"""Every scenario of the engine runs in this process, over the wire, and, where asked for, on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine_room import FLAVOURS, Room, engine_room
from wiped_server import REAL


@pytest.fixture(params=[*FLAVOURS, *REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as found:
        yield found
