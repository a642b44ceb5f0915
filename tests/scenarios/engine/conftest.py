"""Every scenario of the engine runs in this process, some over the wire; all there, and on a real server, if asked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.engine import FLAVOURS, Room, engine_room
from support.real_server import REAL

HERE = Path(__file__).parent
ONE_OF, WHICH = 12, 11  # over the wire in `make test`: the name decides; these are of seven files


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.is_relative_to(HERE) and "[wire" in item.name and zlib.crc32(item.name.encode()) % ONE_OF != WHICH:
        item.add_marker(pytest.mark.tier("all"))


@pytest.fixture(params=[*FLAVOURS, REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as found:
        yield found
