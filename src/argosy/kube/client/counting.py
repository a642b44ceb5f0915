"""A `Cluster` wrapper that reports every call to a metrics callback and records when kinds were last read.

In: calls of a Cluster. Out: the same results; for each call its verb, kind and status code. Never: reports the name of
an object; changes a call.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from argosy.errors import ClusterError
from argosy.kube.client import Catalog, Cluster, Listing, User, WatchEvent
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

T = TypeVar("T")


class Answered(NamedTuple):
    verb: str  # k8s: the verb of audit logs
    kind: str
    code: int  # HTTP status; 0: no answer
    is_dry: bool = False


Tell = Callable[[Answered], None]


class Counted:
    """Implements `Cluster`. All times are those of `clock`, in seconds."""

    def __init__(self, cluster: Cluster, tell: Tell, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._tell, self._clock = cluster, tell, clock
        self.began_at = clock()
        self.kinds_at = self.began_at  # last discovery
        self.fed: dict[GroupKind, float] = {}  # last list, watch event or end of a watch, by kind

    @property
    def heard_at(self) -> float:
        """Time of the last answer that fills a cache: discovery, a list or a watch event."""
        return max(self.kinds_at, *self.fed.values(), self.began_at)

    async def _told(self, call: Awaitable[T], verb: str, kind: str, *, is_dry: bool = False) -> T:
        code = 0
        try:
            found = await call
            code = 200
            return found
        except ClusterError as error:
            code = error.code
            raise
        finally:
            self._tell(Answered(verb, kind, code, is_dry))

    async def kinds(self) -> Catalog:
        found = await self._cluster.kinds()
        self.kinds_at = self._clock()
        return found

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._told(self._cluster.get(key), "get", key.kind)

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        found = await self._told(self._cluster.list(kind, **selectors), "list", kind.kind)
        self.fed[kind] = self._clock()
        return found

    async def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:
        events, code = self._cluster.watch(kind, **selectors), 200
        try:
            async for event in events:
                self.fed[kind] = self._clock()
                yield event
            self.fed[kind] = self._clock()
        except ClusterError as error:
            code = error.code
            raise
        finally:
            self._tell(Answered("watch", kind.kind, code))
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def logs(self, key: ResourceKey, **chosen: Any) -> AsyncIterator[str]:
        return self._cluster.logs(key, **chosen)

    def acting_as(self, user: User) -> Cluster:
        return Counted(self._cluster.acting_as(user), self._tell, self._clock)

    async def create(self, manifest: Manifest, *, dry_run: bool = False, **terms: Any) -> Manifest:
        call = self._cluster.create(manifest, dry_run=dry_run, **terms)
        # `key_of` would fail: reviews and objects with generateName have no name yet.
        return await self._told(call, "create", str(manifest.get("kind") or ""), is_dry=dry_run)

    async def apply(self, manifest: Manifest, *, dry_run: bool = False, **terms: Any) -> Manifest:
        call = self._cluster.apply(manifest, dry_run=dry_run, **terms)
        return await self._told(call, "patch", key_of(manifest).kind, is_dry=dry_run)

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, **terms: Any) -> Manifest:
        call = self._cluster.replace(manifest, dry_run=dry_run, **terms)
        return await self._told(call, "update", key_of(manifest).kind, is_dry=dry_run)

    async def patch(self, key: ResourceKey, patch: Any, *, dry_run: bool = False, **terms: Any) -> Manifest:
        call = self._cluster.patch(key, patch, dry_run=dry_run, **terms)
        return await self._told(call, "patch", key.kind, is_dry=dry_run)

    async def delete(self, key: ResourceKey, **terms: Any) -> None:
        await self._told(self._cluster.delete(key, **terms), "delete", key.kind)
