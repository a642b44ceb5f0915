"""Rooms of identities."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from identity_room import Room, identity_room


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with identity_room(tmp_path) as made:
        yield made
