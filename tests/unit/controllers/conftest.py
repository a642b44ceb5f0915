"""Controllers are tried on the embedded cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from argosy.apiserver.embedded import EmbeddedCluster
from argosy.cluster import Cluster


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as found:
        yield found


@pytest.fixture
async def namespace(cluster: Cluster) -> str:
    made = await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "control-"}})
    return str(made["metadata"]["name"])
