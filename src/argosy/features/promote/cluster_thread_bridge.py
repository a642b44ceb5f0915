"""Lets a thread use the cluster connection of another event loop: promotions are planned in threads.

In: an ApplicationService and its event loop. Out: a ServiceOpener for threads. Never: opens or closes a connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar, cast

from argosy.gitops.application_client.application_service import ApplicationService, ServiceOpener
from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send

T = TypeVar("T")


class _ThreadBridgedCluster(ForwardingCluster):
    def __init__(self, cluster: Cluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(cluster)
        self._loop = loop

    async def _send(self, call: Call, send: Send[T]) -> T:
        return await self._run_on_loop(send())

    async def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        items, end = open_stream(), object()
        try:
            while (item := await self._run_on_loop(_read_next(items, end))) is not end:
                yield cast(T, item)
        finally:
            if isinstance(items, AsyncGenerator):
                await self._run_on_loop(items.aclose())

    async def _run_on_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


async def _read_next(items: AsyncIterator[object], end: object) -> object:
    return await anext(items, end)


def bridge_service(service: ApplicationService, loop: asyncio.AbstractEventLoop) -> ServiceOpener:
    """Return an opener for other threads; in the loop's own thread a call would deadlock."""

    @asynccontextmanager
    async def open_bridged() -> AsyncIterator[ApplicationService]:
        yield replace(service, cluster=_ThreadBridgedCluster(service.cluster, loop))

    return open_bridged
