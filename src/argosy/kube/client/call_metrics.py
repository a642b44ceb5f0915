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
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey

T = TypeVar("T")


class RecordedCall(NamedTuple):
    verb: str  # k8s: the verb of audit logs
    kind: str
    code: int  # HTTP status; 0: no answer
    is_dry_run: bool = False


RecordCall = Callable[[RecordedCall], None]


class RecordingCluster:
    """Implements `Cluster`. All times are those of `clock`, in seconds."""

    def __init__(self, cluster: Cluster, record: RecordCall, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster, self._record, self._clock = cluster, record, clock
        self.created_at = clock()
        self.discovered_at = self.created_at  # last discovery
        self.last_read_at: dict[GroupKind, float] = {}  # last list, watch event or end of a watch, by kind

    @property
    def last_update_at(self) -> float:
        """Time of the last answer that fills a cache: discovery, a list or a watch event."""
        return max(self.discovered_at, *self.last_read_at.values(), self.created_at)

    async def _record_call(self, call: Awaitable[T], verb: str, kind: str, *, is_dry_run: bool = False) -> T:
        code = 0
        try:
            result = await call
            code = 200
            return result
        except ClusterError as error:
            code = error.code
            raise
        finally:
            self._record(RecordedCall(verb, kind, code, is_dry_run))

    async def kinds(self) -> Catalog:
        catalog = await self._cluster.kinds()
        self.discovered_at = self._clock()
        return catalog

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._record_call(self._cluster.get(key), "get", key.kind)

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        listing = await self._record_call(self._cluster.list(kind, **selectors), "list", kind.kind)
        self.last_read_at[kind] = self._clock()
        return listing

    async def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:
        events, code = self._cluster.watch(kind, **selectors), 200
        try:
            async for event in events:
                self.last_read_at[kind] = self._clock()
                yield event
            self.last_read_at[kind] = self._clock()
        except ClusterError as error:
            code = error.code
            raise
        finally:
            self._record(RecordedCall("watch", kind.kind, code))
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def logs(self, key: ResourceKey, **options: Any) -> AsyncIterator[str]:
        return self._cluster.logs(key, **options)

    def acting_as(self, user: User) -> Cluster:
        return RecordingCluster(self._cluster.acting_as(user), self._record, self._clock)

    async def create(self, manifest: Manifest, *, dry_run: bool = False, **options: Any) -> Manifest:
        call = self._cluster.create(manifest, dry_run=dry_run, **options)
        # `key_of` would fail: reviews and objects with generateName have no name yet.
        return await self._record_call(call, "create", str(manifest.get("kind") or ""), is_dry_run=dry_run)

    async def apply(self, manifest: Manifest, *, dry_run: bool = False, **options: Any) -> Manifest:
        call = self._cluster.apply(manifest, dry_run=dry_run, **options)
        return await self._record_call(call, "patch", key_of(manifest).kind, is_dry_run=dry_run)

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, **options: Any) -> Manifest:
        call = self._cluster.replace(manifest, dry_run=dry_run, **options)
        return await self._record_call(call, "update", key_of(manifest).kind, is_dry_run=dry_run)

    async def patch(self, key: ResourceKey, patch: Any, *, dry_run: bool = False, **options: Any) -> Manifest:
        call = self._cluster.patch(key, patch, dry_run=dry_run, **options)
        return await self._record_call(call, "patch", key.kind, is_dry_run=dry_run)

    async def delete(self, key: ResourceKey, **options: Any) -> None:
        await self._record_call(self._cluster.delete(key, **options), "delete", key.kind)
