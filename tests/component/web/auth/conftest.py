"""Accounts, sessions and tokens on an embedded cluster, and logins at an OIDC provider that runs beside the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from support.identities import room
from support.oidc_login import Scene, open_scene

__all__ = ["room"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def at_home(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    """One provider for all tests of a file; `renew` resets it."""
    async with open_scene(tmp_path_factory.mktemp("provider")) as scene:
        yield scene
