"""Memory use per stored object."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

COUNT = 200
STORED_BYTES = 600  # of one ConfigMap with 200 bytes of data


async def create(cluster: EmbeddedCluster, prefix: str) -> None:
    for number in range(COUNT):
        metadata = {"name": f"{prefix}-{number}", "namespace": "default"}
        data = {"text": "x" * 200}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


@pytest.mark.tier("all")  # tracing memory makes everything slow
async def test_small_object_uses_less_than_four_times_its_bytes() -> None:
    async with EmbeddedCluster.open() as cluster:
        await create(cluster, "first")
        tracemalloc.start()
        try:
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            await create(cluster, "second")
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert (after - before) / COUNT < 4 * STORED_BYTES
