"""Add-ons are tested on the embedded cluster, prepared as the sandbox prepares them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

Truth = Callable[[], Awaitable[object]]


@pytest.fixture
def until() -> Callable[[Truth], Awaitable[None]]:
    """Waits until something is so."""

    async def wait(is_so: Truth) -> None:
        async with asyncio.timeout(60):
            while not await is_so():
                await asyncio.sleep(0.01)

    return wait
