"""Lets a thread use the cluster connection of another event loop: promotions are planned in threads.

In: an ApplicationService and its event loop. Out: a ServiceOpener for threads. Never: opens or closes a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

from argosy.gitops.application_client.client import ApplicationService, ServiceOpener
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

Answer = TypeVar("Answer")


class _ThreadBridgedCluster:
    """Implements the part of the Cluster interface that promotions use."""

    def __init__(self, cluster: Cluster, loop: asyncio.AbstractEventLoop) -> None:
        self._cluster, self._loop = cluster, loop

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._run_on_loop(self._cluster.get(key))

    async def create(self, manifest: Manifest) -> Manifest:
        return await self._run_on_loop(self._cluster.create(manifest))

    async def patch(self, key: ResourceKey, patch: Any) -> Manifest:
        return await self._run_on_loop(self._cluster.patch(key, patch))

    async def _run_on_loop(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


def bridge_service(service: ApplicationService, loop: asyncio.AbstractEventLoop) -> ServiceOpener:
    """Return an opener for other threads; in the loop's own thread a call would deadlock."""

    @asynccontextmanager
    async def open_bridged() -> AsyncIterator[ApplicationService]:
        yield replace(service, cluster=cast(Cluster, _ThreadBridgedCluster(service.cluster, loop)))

    return open_bridged
