"""In-memory control plane and its API client, created anew for each test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from argosy.sandbox.apiserver.control_plane import ControlPlane
from support.api_client import TOKEN, Api


async def furnished(opened: ControlPlane) -> None:
    """Wait until every namespace has its default ServiceAccount; afterwards only the test writes."""
    while opened.store.count("serviceaccounts") < opened.store.count("namespaces"):
        await asyncio.sleep(0)


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    async with ControlPlane.open(admin_token=TOKEN) as opened:
        await furnished(opened)
        yield opened


@pytest.fixture
async def guarded() -> AsyncIterator[ControlPlane]:
    """Control plane with RBAC."""
    async with ControlPlane.open(admin_token=TOKEN, rbac=True) as opened:
        await furnished(opened)
        yield opened


@pytest.fixture
def api(plane: ControlPlane) -> Api:
    return Api(plane)
