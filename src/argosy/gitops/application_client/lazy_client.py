"""A cluster client that connects on its first request, for other destination clusters.

In: a connection and an opener. Out: a `Cluster`. Never: waits long for a cluster that does not answer; opens it twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, Final, TypeVar

from argosy.gitops.application_client.client import Opener
from argosy.kube.client import Catalog, Cluster, Listing, User, WatchEvent
from argosy.kube.client.connection import Connection
from argosy.kube.client.status_errors import Unavailable
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

T = TypeVar("T")
SECONDS: Final = 10.0  # request timeout: a user waits


class _LazyCluster:
    """Implements `Cluster` on top of the one that `_open` returns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def _open(self) -> Cluster:
        raise NotImplementedError

    async def _soon(self, answer: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(SECONDS):
                return await answer
        except TimeoutError:
            raise Unavailable(f"cluster {self._connection.name}: no answer within {SECONDS:g} s") from None

    async def kinds(self) -> Catalog:
        return await self._soon((await self._open()).kinds())

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._soon((await self._open()).get(key))

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        return await self._soon((await self._open()).list(kind, **selectors))

    async def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:
        async for event in (await self._open()).watch(kind, **selectors):
            yield event

    async def logs(self, key: ResourceKey, **chosen: Any) -> AsyncIterator[str]:
        async for line in (await self._open()).logs(key, **chosen):
            yield line

    def acting_as(self, user: User) -> Cluster:
        return _Impersonating(self._connection, self._open, user)

    async def create(self, manifest: Manifest, **terms: Any) -> Manifest:
        return await self._soon((await self._open()).create(manifest, **terms))

    async def apply(self, manifest: Manifest, **terms: Any) -> Manifest:
        return await self._soon((await self._open()).apply(manifest, **terms))

    async def replace(self, manifest: Manifest, **terms: Any) -> Manifest:
        return await self._soon((await self._open()).replace(manifest, **terms))

    async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
        return await self._soon((await self._open()).patch(key, patch, **terms))

    async def delete(self, key: ResourceKey, **terms: Any) -> None:
        await self._soon((await self._open()).delete(key, **terms))


class Late(_LazyCluster):
    """Opens the cluster on the first request; the caller must close it."""

    def __init__(self, connection: Connection, opener: Opener) -> None:
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


class _Impersonating(_LazyCluster):
    """The same cluster as another user. The owner of the cluster closes it."""

    def __init__(self, connection: Connection, open_cluster: Callable[[], Awaitable[Cluster]], user: User) -> None:
        super().__init__(connection)
        self._open_cluster, self._user = open_cluster, user

    async def _open(self) -> Cluster:
        return (await self._open_cluster()).acting_as(self._user)
