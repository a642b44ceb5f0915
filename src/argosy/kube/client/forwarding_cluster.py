"""The base classes of wrappers: a reader and a `Cluster` that forward every call to another one.

In: calls of a Cluster. Out: the same calls with the same arguments, through hooks that a wrapper overrides. Never:
drops the wrapper of an impersonating client; sends a call before its hook does.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, NamedTuple, Self, TypeVar

from argosy.kube.client import (
    Catalog,
    Cluster,
    ClusterReader,
    Listing,
    PatchKind,
    Propagation,
    User,
    WatchEvent,
)
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version

T = TypeVar("T")
Send = Callable[[], Coroutine[Any, Any, T]]  # sends the request to the wrapped cluster
WRITE_METHODS: Final = frozenset({"create", "apply", "replace", "patch", "delete"})


class Call(NamedTuple):
    """What a hook knows about a call."""

    method: str  # of `Cluster`
    kind: GroupKind = GroupKind("", "")  # empty: discovery
    key: ResourceKey | None = None  # None: discovery, lists and watches
    is_dry_run: bool = False
    subresource: str = ""  # of a patch
    subresource_of: ResourceKey | None = None  # of a create

    @property
    def is_write(self) -> bool:
        """True if the call changes the cluster."""
        return self.method in WRITE_METHODS and not self.is_dry_run

    def __str__(self) -> str:
        return f"{self.method} {self.key or self.kind}"


class ForwardingReader:
    """Implements `ClusterReader` on top of another one."""

    def __init__(self, cluster: ClusterReader) -> None:
        self._cluster = cluster

    # -- hooks --------------------------------------------------------------------------------------------------

    async def _send(self, call: Call, send: Send[T]) -> T:
        """Run one awaited call. All of them come here."""
        return await send()

    def _stream(self, call: Call, open_stream: Callable[[], AsyncIterator[T]]) -> AsyncIterator[T]:
        """Run one watch, or one reading of logs. All of them come here."""
        return open_stream()

    # -- calls --------------------------------------------------------------------------------------------------

    async def kinds(self) -> Catalog:
        return await self._send(Call("kinds"), lambda: self._cluster.kinds())  # noqa: PLW0108  # a lazy client has no cluster yet

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._send(Call("get", key.group_kind, key), lambda: self._cluster.get(key))

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        return await self._send(
            Call("list", kind),
            lambda: self._cluster.list(
                kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
            ),
        )

    def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        return self._stream(
            Call("watch", kind),
            lambda: self._cluster.watch(
                kind, since=since, namespace=namespace, labels=labels, metadata_only=metadata_only
            ),
        )


class ForwardingCluster(ForwardingReader):
    """Implements `Cluster` on top of another one."""

    _cluster: Cluster

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)

    # -- hooks --------------------------------------------------------------------------------------------------

    async def _write(self, call: Call, send: Send[Manifest]) -> Manifest:
        """Run one write that returns the written object. It goes on to `_send`."""
        return await self._send(call, send)

    def _wrap(self, cluster: Cluster) -> Self:
        """Wrap another client of the same cluster like this one, sharing the state of this wrapper."""
        wrapper = copy.copy(self)
        wrapper._cluster = cluster
        return wrapper

    # -- calls --------------------------------------------------------------------------------------------------

    def acting_as(self, user: User) -> ForwardingCluster:
        return self._wrap(self._cluster.acting_as(user))

    def logs(
        self,
        key: ResourceKey,
        *,
        container: str = "",
        follow: bool = False,
        tail: int | None = None,
        since: int | None = None,
        previous: bool = False,
    ) -> AsyncIterator[str]:
        return self._stream(
            Call("logs", key.group_kind, key),
            lambda: self._cluster.logs(
                key, container=container, follow=follow, tail=tail, since=since, previous=previous
            ),
        )

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        key = _key_of_new(manifest)
        return await self._write(
            Call("create", key.group_kind, key, dry_run, subresource_of=subresource_of),
            lambda: self._cluster.create(manifest, subresource_of=subresource_of, dry_run=dry_run, manager=manager),
        )

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, dry_run: bool = False) -> Manifest:
        key = key_of(manifest)
        return await self._write(
            Call("apply", key.group_kind, key, dry_run),
            lambda: self._cluster.apply(manifest, manager=manager, force=force, dry_run=dry_run),
        )

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, manager: str = "") -> Manifest:
        key = key_of(manifest)
        return await self._write(
            Call("replace", key.group_kind, key, dry_run),
            lambda: self._cluster.replace(manifest, dry_run=dry_run, manager=manager),
        )

    async def patch(
        self,
        key: ResourceKey,
        patch: Any,
        *,
        kind_of_patch: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        manager: str = "",
        api_version: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        return await self._write(
            Call("patch", key.group_kind, key, dry_run, subresource),
            lambda: self._cluster.patch(
                key,
                patch,
                kind_of_patch=kind_of_patch,
                subresource=subresource,
                manager=manager,
                api_version=api_version,
                dry_run=dry_run,
            ),
        )

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None:
        await self._send(
            Call("delete", key.group_kind, key),
            lambda: self._cluster.delete(key, propagation=propagation, uid=uid, version=version, grace=grace),
        )


def _key_of_new(manifest: Manifest) -> ResourceKey:
    """Return the key of an object to create. k8s: a review has no name, and `generateName` is only a prefix."""
    metadata = manifest.get("metadata") or {}
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    name = metadata.get("name") or metadata.get("generateName") or ""
    return ResourceKey(group, str(manifest.get("kind") or ""), metadata.get("namespace") or "", name)
