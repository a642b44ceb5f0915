"""A plane in memory and a client of it, fresh for every test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from argosy.sandbox.apiserver.control_plane import Plane
from support.api_client import TOKEN, Api


async def furnished(opened: Plane) -> None:
    """Every namespace has its account: from here on only the test writes."""
    while opened.store.count("serviceaccounts") < opened.store.count("namespaces"):
        await asyncio.sleep(0)


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with Plane.open(admin_token=TOKEN) as opened:
        await furnished(opened)
        yield opened


@pytest.fixture
async def guarded() -> AsyncIterator[Plane]:
    """With RBAC."""
    async with Plane.open(admin_token=TOKEN, rbac=True) as opened:
        await furnished(opened)
        yield opened


@pytest.fixture
def api(plane: Plane) -> Api:
    return Api(plane)
