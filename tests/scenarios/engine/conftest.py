"""Every scenario of the engine runs in this process, over the wire, and, where asked for, on a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from engine_room import FLAVOURS, Room, engine_room
from wiped_server import WipedServer, is_asked_for, wiped_server

ALL = [*FLAVOURS, *([pytest.param("real", marks=pytest.mark.prove)] if is_asked_for() else [])]


@pytest.fixture(scope="session")
def real_server() -> Iterator[WipedServer]:
    with wiped_server() as found:
        yield found


@pytest.fixture(params=ALL)
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as found:
        yield found
