"""A cluster client that records the RBAC attributes of each call.

In: any cluster client. Out: the same interface, and (verb, group, resource) of each call. Never: refuses a call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from argosy.kube.client import Catalog, Cluster, Listing, WatchEvent
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version

Right = tuple[str, str, str]


class RecordedCluster:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.used: set[Right] = set()

    async def _note(self, verb: str, kind: GroupKind, subresource: str = "") -> None:
        info = (await self._cluster.kinds()).get(kind)
        plural = info.plural if info else f"{kind.kind.lower()}s"
        self.used.add((verb, kind.group, f"{plural}/{subresource}" if subresource else plural))

    async def kinds(self) -> Catalog:
        return await self._cluster.kinds()

    async def get(self, key: ResourceKey) -> Manifest | None:
        await self._note("get", key.group_kind)
        return await self._cluster.get(key)

    async def list(self, kind: GroupKind, **options: Any) -> Listing:
        await self._note("list", kind)
        return await self._cluster.list(kind, **options)

    async def watch(self, kind: GroupKind, **options: Any) -> AsyncIterator[WatchEvent]:
        await self._note("watch", kind)
        async for event in self._cluster.watch(kind, **options):
            yield event

    async def create(
        self, manifest: Manifest, *, subresource_of: ResourceKey | None = None, **options: Any
    ) -> Manifest:
        if subresource_of is None:
            await self._note("create", _kind_of(manifest))
        else:
            await self._note("create", subresource_of.group_kind, str(manifest["kind"]).lower())
        return await self._cluster.create(manifest, subresource_of=subresource_of, **options)

    async def patch(self, key: ResourceKey, patch: Any, *, subresource: str = "", **options: Any) -> Manifest:
        await self._note("patch", key.group_kind, subresource)
        return await self._cluster.patch(key, patch, subresource=subresource, **options)

    async def replace(self, manifest: Manifest, **options: Any) -> Manifest:
        await self._note("update", _kind_of(manifest))
        return await self._cluster.replace(manifest, **options)

    async def apply(self, manifest: Manifest, **options: Any) -> Manifest:
        await self._note("patch", _kind_of(manifest))
        return await self._cluster.apply(manifest, **options)

    async def delete(self, key: ResourceKey, **options: Any) -> None:
        await self._note("delete", key.group_kind)
        await self._cluster.delete(key, **options)


def _kind_of(manifest: Manifest) -> GroupKind:
    """Return the kind of a manifest; also works for reviews, which have no name."""
    return GroupKind(split_api_version(manifest["apiVersion"])[0], manifest["kind"])
