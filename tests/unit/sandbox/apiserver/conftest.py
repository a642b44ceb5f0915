"""A plane in memory and a client of it, fresh for every test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from argosy.sandbox.apiserver.control_plane import ControlPlane
from support.api_client import TOKEN, Api


async def furnished(opened: ControlPlane) -> None:
    """Every namespace has its account: from here on only the test writes."""
    while opened.store.count("serviceaccounts") < opened.store.count("namespaces"):
        await asyncio.sleep(0)


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with ControlPlane.open(admin_token=TOKEN) as opened:
        await furnished(opened)
        yield opened


@pytest.fixture
async def guarded() -> AsyncIterator[ControlPlane]:
    """With RBAC."""
    async with ControlPlane.open(admin_token=TOKEN, rbac=True) as opened:
        await furnished(opened)
        yield opened


@pytest.fixture
def api(plane: ControlPlane) -> Api:
    return Api(plane)
