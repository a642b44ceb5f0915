"""A cluster client that connects on its first request, for other destination clusters.

In: a connection and an opener. Out: a `Cluster`. Never: waits long for a cluster that does not answer; opens it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

from argosy.gitops.application_client.client import ClusterOpener
from argosy.kube.client import Catalog, Cluster, Listing, User, WatchEvent
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.status_errors import ApiServerUnavailable
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey

T = TypeVar("T")
REQUEST_TIMEOUT_SECONDS: Final = 10.0  # request timeout: a user waits


class _LazyCluster:
    """Implements `Cluster` on top of the one that `_open` returns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _open(self) -> Cluster:
        raise NotImplementedError

    async def _with_timeout(self, request: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_SECONDS):
                return await request
        except TimeoutError:
            raise ApiServerUnavailable(
                f"cluster {self._connection.name}: no answer within {REQUEST_TIMEOUT_SECONDS:g} s"
            ) from None

    async def kinds(self) -> Catalog:
        return await self._with_timeout((await self._open()).kinds())

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._with_timeout((await self._open()).get(key))

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        return await self._with_timeout((await self._open()).list(kind, **selectors))

    async def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:
        async for event in (await self._open()).watch(kind, **selectors):
            yield event

    async def logs(self, key: ResourceKey, **options: Any) -> AsyncIterator[str]:
        async for line in (await self._open()).logs(key, **options):
            yield line

    def acting_as(self, user: User) -> Cluster:
        return _ImpersonatingClient(self._connection, self._open, user)

    async def create(self, manifest: Manifest, **options: Any) -> Manifest:
        return await self._with_timeout((await self._open()).create(manifest, **options))

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        return await self._with_timeout((await self._open()).apply(manifest, **options))

    async def replace(self, manifest: Manifest, **options: Any) -> Manifest:
        return await self._with_timeout((await self._open()).replace(manifest, **options))

    async def patch(self, key: ResourceKey, patch: Any, **options: Any) -> Manifest:
        return await self._with_timeout((await self._open()).patch(key, patch, **options))

    async def delete(self, key: ResourceKey, **options: Any) -> None:
        await self._with_timeout((await self._open()).delete(key, **options))


class LazyClusterClient(_LazyCluster):
    """Opens the cluster on the first request; the caller must close it."""

    def __init__(self, connection: Connection, opener: ClusterOpener) -> None:
        super().__init__(connection)
        self._opener = opener
        self._stack = AsyncExitStack()
        self._cluster: Cluster | None = None
        self._lock = asyncio.Lock()

    async def close(self) -> None:
        await self._stack.aclose()
        self._cluster = None

    async def _open(self) -> Cluster:
        async with self._lock:
            if self._cluster is None:
                self._cluster = await self._stack.enter_async_context(self._opener(self._connection))
            return self._cluster


class _ImpersonatingClient(_LazyCluster):
    """The same cluster as another user. The owner of the cluster closes it."""

    def __init__(self, connection: Connection, open_cluster: Callable[[], Awaitable[Cluster]], user: User) -> None:
        super().__init__(connection)
        self._open_cluster, self._user = open_cluster, user

    async def _open(self) -> Cluster:
        return (await self._open_cluster()).acting_as(self._user)
