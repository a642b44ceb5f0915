"""A Reader and a Cluster that answer from a watched cache.

In: a cache kept fresh by watches, and which kinds it holds completely. Out: results of a Reader and of a Cluster.
Never: keeps a deleted object of an unwatched kind in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from argosy.errors import TransientError
from argosy.gitops.application import Application
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.live.ownership import claims, parents
from argosy.gitops.live.resource_tree import Node, node_of
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.source.repositories import Repositories
from argosy.isolation import Pool
from argosy.isolation.process_pool import Crew
from argosy.kube.client import Catalog, Cluster, Listing
from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.selectors import labels as read_labels

Knows = Callable[[GroupKind], bool]
MOST_TREES: Final = 16


class SeenCluster(Doorway):
    """Reads fully cached kinds without a request, and all other kinds from the cluster."""

    def __init__(self, cluster: Cluster, cache: Cache, knows: Knows) -> None:
        super().__init__(cluster, cache.get)
        self._cache, self._knows = cache, knows

    async def kinds(self) -> Catalog:
        try:
            return await super().kinds()
        except TransientError:
            if not self._kinds:
                raise
            return self._kinds  # the server is unreachable; its kinds are unlikely to change

    async def get(self, key: ResourceKey) -> Manifest | None:
        if not self._knows(key.group_kind):
            return await super().get(key)
        return self.newest(key, self._cache.get(key))

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        if fields or metadata_only or not self._knows(kind):
            return await super().list(
                kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
            )
        found = self._cache.list(kind, namespace=namespace)
        if labels:
            selector = read_labels(labels)
            found = [each for each in found if selector.matches(each["metadata"].get("labels"))]
        return Listing(found, "")


class LiveReader(Reader):
    """Reads fully cached kinds from the cache; objects of other kinds are fetched, and dropped once they are gone."""

    def __init__(
        self, desk: Desk, repositories: Repositories, crew: Crew, pool: Pool, cache: Cache, knows: Knows
    ) -> None:
        super().__init__(desk, repositories, crew, pool, cache)
        self._knows = knows
        self._trees = _Trees()

    async def load_settings(self) -> None:
        """Do nothing: settings are watched."""

    async def tree(self, app: Application) -> list[Node]:
        """Return the resource tree, reusing unchanged nodes: a page, its stream and its tabs ask repeatedly."""
        self.check(app)
        version = str((app.wire.get("metadata") or {}).get("resourceVersion") or "")
        known, changes = self._trees.get(app.key, version), self._trees.changes
        if known is None:
            nodes = await super().tree(app)
            if changes == self._trees.changes:
                self._trees.keep(app.key, version, nodes)
            return nodes
        async with known.turn:  # concurrent callers wait for one update
            if known.stale:
                keys, known.stale = known.stale, set()
                try:
                    with self.on_behalf_of(app):
                        known.renew(await self._nodes(keys))
                except BaseException:
                    known.stale |= keys
                    raise
        return known.nodes

    async def _nodes(self, keys: Iterable[ResourceKey]) -> list[Node]:
        live = [found for key in keys if (found := self.cache.get(key)) is not None]
        said = await self.rules.assess_all(live)
        return [replace(node_of(self.cache, each), health=health) for each, health in zip(live, said, strict=True)]

    def notice(self, before: Manifest | None, after: Manifest | None) -> None:
        self._trees.notice(before, after, is_all=self.settings.concerns(after or before or {}))
        self._doorway.notice(before, after)
        if isinstance(self.cluster, SeenCluster):
            self.cluster.notice(before, after)

    async def load_namespaces(self, namespaces: Iterable[str]) -> None:
        """Do nothing: all readable objects of the namespaces are watched."""

    async def _put(self, key: ResourceKey) -> None:
        if self._knows(key.group_kind):
            self.denied.discard(key)
            return
        before = self.cache.get(key)
        await super()._put(key)
        if before is not None and self.cache.get(key) is before:  # no watch reports its deletion
            self.cache.drop(key)


class _Known:
    """A cached resource tree, and the keys of its nodes that changed."""

    def __init__(self, version: str, nodes: list[Node]) -> None:
        self.version, self.nodes = version, nodes
        self.stale: set[ResourceKey] = set()  # nodes in the same position, with changed content
        self.turn = asyncio.Lock()
        self._places = {node.key: place for place, node in enumerate(nodes)}
        self._namespaces = {key.namespace for key in self._places} - {""}
        self._uids = {node.uid for node in nodes}

    def renew(self, nodes: Iterable[Node]) -> None:
        fresh = list(self.nodes)  # copy: earlier callers hold the previous list
        for node in nodes:
            fresh[self._places[node.key]] = node
        self.nodes = fresh

    def outlives(self, before: Manifest | None, after: Manifest | None) -> bool:
        """Record a change. True if the tree still has the same nodes in the same positions."""
        manifest = after or before or {}
        key = key_of(manifest)
        if before is not None and after is not None and _is_where_it_was(before, after):
            if key in self._places:
                self.stale.add(key)
            return True
        metadata = manifest["metadata"]
        if key.namespace in self._namespaces or key in self._places:
            return False
        return not any(each.get("uid") in self._uids for each in metadata.get("ownerReferences") or ())


def _is_where_it_was(before: Manifest, after: Manifest) -> bool:
    if before["metadata"].get("uid") != after["metadata"].get("uid"):
        return False
    if after["kind"] == "StatefulSet" and claims(before) != claims(after):
        return False
    return list(parents(before)) == list(parents(after))


class _Trees:
    """Cached resource trees, shared by all copies of a reader."""

    def __init__(self) -> None:
        self.changes = 0
        self._kept: dict[ResourceKey, _Known] = {}

    def notice(self, before: Manifest | None, after: Manifest | None, *, is_all: bool) -> None:
        self.changes += 1
        if is_all:
            self._kept.clear()
        for key in [key for key, known in self._kept.items() if not known.outlives(before, after)]:
            del self._kept[key]

    def get(self, key: ResourceKey, version: str) -> _Known | None:
        known = self._kept.get(key)
        return known if known is not None and version and known.version == version else None

    def keep(self, key: ResourceKey, version: str, nodes: list[Node]) -> None:
        if len(self._kept) >= MOST_TREES:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = _Known(version, nodes)
