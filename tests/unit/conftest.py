"""What most rooms are tried on: an embedded cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from argosy.cluster import Cluster


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    from argosy.apiserver.embedded import EmbeddedCluster

    async with EmbeddedCluster.open() as found:
        yield found
