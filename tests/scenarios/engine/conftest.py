"""Every scenario of the engine runs in this process, some over the wire; all there, and on a real server, if asked."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from engine_room import FLAVOURS, Room, engine_room
from wiped_server import IS_ASKED_FOR, REAL

HERE = Path(__file__).parent
ONE_OF = 6  # that run over the wire in `make test`: which, is decided by the name


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if IS_ASKED_FOR:
        return
    passed_over = [each for each in items if each.path.is_relative_to(HERE) and _is_passed_over(each.name)]
    config.hook.pytest_deselected(items=passed_over)
    left_out = set(passed_over)
    items[:] = [each for each in items if each not in left_out]


def _is_passed_over(name: str) -> bool:
    return "[wire" in name and zlib.crc32(name.encode()) % ONE_OF != 0


@pytest.fixture(params=[*FLAVOURS, *REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as found:
        yield found
