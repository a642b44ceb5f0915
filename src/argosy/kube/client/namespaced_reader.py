"""A `ClusterReader` that is limited to some namespaces, as if they were the whole cluster.

In: a cluster, namespaces. Out: combined lists and watches of these namespaces. Never: lists a kind in all namespaces;
lists cluster-scoped kinds, unless they are allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from argosy.kube.client import Catalog, ClusterReader, Listing, WatchEvent
from argosy.kube.client.forwarding_cluster import ForwardingReader
from argosy.kube.resource_key import GroupKind

_READ_VERBS: Final = frozenset({"list", "watch"})
EVENT_QUEUE_SIZE: Final = 100  # events in the queue of a combined watch


class NamespacedClusterReader(ForwardingReader):
    """Implements `ClusterReader`."""

    def __init__(self, cluster: ClusterReader, namespaces: Sequence[str], *, has_cluster_kinds: bool) -> None:
        super().__init__(cluster)
        self._namespaces, self._has_cluster_kinds = tuple(namespaces), has_cluster_kinds
        self._versions: dict[GroupKind, dict[str, str]] = {}  # last resourceVersion by kind and namespace

    async def kinds(self) -> Catalog:
        catalog = await self._cluster.kinds()
        if self._has_cluster_kinds:
            return catalog
        return {
            kind: info if info.namespaced else info._replace(verbs=tuple(set(info.verbs) - _READ_VERBS))
            for kind, info in catalog.items()
        }

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        list_namespace = partial(super().list, kind, labels=labels, fields=fields, metadata_only=metadata_only)
        if namespace or not await self._is_namespaced(kind):
            return await list_namespace(namespace=namespace)
        listings = {name: await list_namespace(namespace=name) for name in self._namespaces}
        self._versions[kind] = {name: listing.version for name, listing in listings.items()}
        items = [item for listing in listings.values() for item in listing.items]
        return Listing(items, listings[self._namespaces[-1]].version)

    async def _is_namespaced(self, kind: GroupKind) -> bool:
        info = (await self._cluster.kinds()).get(kind)
        return info is None or info.namespaced

    async def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        """Watch all namespaces, each from its own last resourceVersion; `since` is only that of the last list."""
        selectors: dict[str, Any] = {"labels": labels, "metadata_only": metadata_only}
        if namespace or not await self._is_namespaced(kind):
            async for event in self._cluster.watch(kind, since=since, namespace=namespace, **selectors):
                yield event
            return
        async for event in self._watch_namespaces(kind, since, selectors):
            yield event

    async def _watch_namespaces(
        self, kind: GroupKind, since: str, selectors: dict[str, Any]
    ) -> AsyncIterator[WatchEvent]:
        queue: asyncio.Queue[tuple[str, WatchEvent | BaseException | None]] = asyncio.Queue(EVENT_QUEUE_SIZE)
        versions = self._versions.setdefault(kind, {})

        async def follow(namespace: str) -> None:
            start = versions.get(namespace) or since
            try:
                async for event in self._cluster.watch(kind, since=start, namespace=namespace, **selectors):
                    await queue.put((namespace, event))
                await queue.put((namespace, None))
            except Exception as error:  # raised to the caller of `watch`
                await queue.put((namespace, error))

        tasks = [asyncio.create_task(follow(watched)) for watched in self._namespaces]
        try:
            while True:
                namespace, event = await queue.get()
                if event is None:
                    return  # the caller watches again, from the last version of each namespace
                if isinstance(event, BaseException):
                    raise event
                versions[namespace] = event.manifest["metadata"].get("resourceVersion") or versions.get(namespace, "")
                yield event
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
