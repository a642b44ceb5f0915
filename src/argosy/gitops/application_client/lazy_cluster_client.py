"""A cluster client that connects on its first request, for other destination clusters.

In: a connection and an opener. Out: a `Cluster`. Never: waits long for a cluster that does not answer; opens it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Final, TypeVar

from argosy.gitops.application_client.application_service import ClusterOpener
from argosy.kube.client import Cluster, User
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send
from argosy.kube.client.status_errors import ApiServerUnavailable

T = TypeVar("T")
REQUEST_TIMEOUT_SECONDS: Final = 10.0  # request timeout: a user waits


class _LazyCluster(ForwardingCluster):
    """Asks `open_cluster` for the cluster before each call."""

    def __init__(self, connection: Connection, open_cluster: Callable[[], Awaitable[Cluster]]) -> None:
        self._connection, self._open = connection, open_cluster

    async def _send(self, call: Call, send: Send[T]) -> T:
        self._cluster = await self._open()
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                return await send()
        except TimeoutError:
            raise ApiServerUnavailable(
                f"cluster {self._connection.name}: no answer within {REQUEST_TIMEOUT_SECONDS:g} s"
            ) from None

    async def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        self._cluster = await self._open()
        async for item in open_stream():
            yield item

    def acting_as(self, user: User) -> ForwardingCluster:
        """Return the same cluster as another user. The owner of this client closes it."""

        async def open_as_user() -> Cluster:
            return (await self._open()).acting_as(user)

        return _LazyCluster(self._connection, open_as_user)


class LazyClusterClient(_LazyCluster):
    """Opens the cluster on the first request; the caller must close it."""

    def __init__(self, connection: Connection, opener: ClusterOpener) -> None:
        super().__init__(connection, self._open_once)
        self._opener = opener
        self._stack = AsyncExitStack()
        self._opened: Cluster | None = None
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        await self._stack.aclose()
        self._opened = None

    async def _open_once(self) -> Cluster:
        async with self._lock:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(self._opener(self._connection))
            return self._opened
