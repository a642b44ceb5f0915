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
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.live.parent_references import claim_name_prefixes, read_parents
from argosy.gitops.live.resource_tree import ResourceNode, build_node
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.isolation import WorkerPool
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import Catalog, Cluster, Listing
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.selectors import parse_label_selector as read_labels
from argosy.kube.well_known_kinds import APPLICATION

IsFullyCached = Callable[[GroupKind], bool]
MAX_CACHED_TREES: Final = 16


class CachedCluster(ReadYourWritesClient):
    """Reads fully cached kinds without a request, and all other kinds from the cluster."""

    def __init__(self, cluster: Cluster, cache: InformerCache, is_fully_cached: IsFullyCached) -> None:
        super().__init__(cluster, cache.get)
        self._cache, self._is_fully_cached = cache, is_fully_cached

    async def kinds(self) -> Catalog:
        try:
            return await super().kinds()
        except TransientError:
            if not self._kinds:
                raise
            return self._kinds  # the server is unreachable; its kinds are unlikely to change

    async def get(self, key: ResourceKey) -> Manifest | None:
        if not self._is_fully_cached(key.group_kind):
            return await super().get(key)
        return self.find_newest(key, self._cache.get(key))

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        if fields or metadata_only or not self._is_fully_cached(kind):
            return await super().list(
                kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
            )
        manifests = self._cache.list(kind, namespace=namespace)
        if labels:
            selector = read_labels(labels)
            manifests = [manifest for manifest in manifests if selector.matches(manifest["metadata"].get("labels"))]
        return Listing(manifests, "")


class CachedReader(ApplicationReader):
    """Reads fully cached kinds from the cache; objects of other kinds are fetched, and dropped once they are gone."""

    def __init__(
        self,
        service: ApplicationService,
        repositories: Repositories,
        workers: ProcessPool,
        pool: WorkerPool,
        cache: InformerCache,
        is_fully_cached: IsFullyCached,
    ) -> None:
        super().__init__(service, repositories, workers, pool, cache)
        self._is_fully_cached = is_fully_cached
        self._trees = _TreeCache()

    async def load_settings(self) -> None:
        """Do nothing: settings are watched."""

    async def build_tree(self, app: Application) -> list[ResourceNode]:
        """Return the resource tree, reusing unchanged nodes: a page, its stream and its tabs ask repeatedly."""
        self.check_same_destination(app)
        version = str((app.wire.get("metadata") or {}).get("resourceVersion") or "")
        cached_tree, change_count = self._trees.get(app.key, version), self._trees.change_count
        if cached_tree is None:
            nodes = await super().build_tree(app)
            if change_count == self._trees.change_count:
                self._trees.store(app.key, version, nodes)
            return nodes
        async with cached_tree.lock:  # concurrent callers wait for one update
            if cached_tree.stale:
                keys, cached_tree.stale = cached_tree.stale, set()
                try:
                    with self.charge_work_to_project(app):
                        cached_tree.replace_nodes(await self._build_nodes(keys))
                except BaseException:
                    cached_tree.stale |= keys
                    raise
        return cached_tree.nodes

    async def _build_nodes(self, keys: Iterable[ResourceKey]) -> list[ResourceNode]:
        live = [manifest for key in keys if (manifest := self.cache.get(key)) is not None]
        assessments = await self.reconciler_settings.assess_all(live)
        return [
            replace(build_node(self.cache, item), health=health) for item, health in zip(live, assessments, strict=True)
        ]

    def on_watch_event(self, before: Manifest | None, after: Manifest | None) -> None:
        self._trees.on_change(before, after, clear_all=self.settings.affects_settings(after or before or {}))
        if after is None and before is not None and key_of(before).group_kind == APPLICATION:
            self.memos.forget(key_of(before))
        self._read_client.on_watch_event(before, after)
        if isinstance(self.cluster, CachedCluster):
            self.cluster.on_watch_event(before, after)

    async def load_namespaces(self, namespaces: Iterable[str]) -> None:
        """Do nothing: all readable objects of the namespaces are watched."""

    async def _load_object(self, key: ResourceKey) -> None:
        if self._is_fully_cached(key.group_kind):
            self.unreadable.discard(key)
            return
        before = self.cache.get(key)
        await super()._load_object(key)
        if before is not None and self.cache.get(key) is before:  # no watch reports its deletion
            self.cache.drop(key)


class _CachedTree:
    """A cached resource tree, and the keys of its nodes that changed."""

    def __init__(self, version: str, nodes: list[ResourceNode]) -> None:
        self.version, self.nodes = version, nodes
        self.stale: set[ResourceKey] = set()  # nodes in the same position, with changed content
        self.lock = asyncio.Lock()
        self._positions = {node.key: position for position, node in enumerate(nodes)}
        self._namespaces = {key.namespace for key in self._positions} - {""}
        self._uids = {node.uid for node in nodes}

    def replace_nodes(self, nodes: Iterable[ResourceNode]) -> None:
        updated = list(self.nodes)  # copy: earlier callers hold the previous list
        for node in nodes:
            updated[self._positions[node.key]] = node
        self.nodes = updated

    def survives_change(self, before: Manifest | None, after: Manifest | None) -> bool:
        """Record a change. True if the tree still has the same nodes in the same positions."""
        manifest = after or before or {}
        key = key_of(manifest)
        if before is not None and after is not None and _has_same_position(before, after):
            if key in self._positions:
                self.stale.add(key)
            return True
        metadata = manifest["metadata"]
        if key.namespace in self._namespaces or key in self._positions:
            return False
        return not any(reference.get("uid") in self._uids for reference in metadata.get("ownerReferences") or ())


def _has_same_position(before: Manifest, after: Manifest) -> bool:
    if before["metadata"].get("uid") != after["metadata"].get("uid"):
        return False
    if after["kind"] == "StatefulSet" and claim_name_prefixes(before) != claim_name_prefixes(after):
        return False
    return list(read_parents(before)) == list(read_parents(after))


class _TreeCache:
    """Cached resource trees, shared by all copies of a reader."""

    def __init__(self) -> None:
        self.change_count = 0
        self._cached_trees: dict[ResourceKey, _CachedTree] = {}

    def on_change(self, before: Manifest | None, after: Manifest | None, *, clear_all: bool) -> None:
        self.change_count += 1
        if clear_all:
            self._cached_trees.clear()
        for key in [
            key for key, cached_tree in self._cached_trees.items() if not cached_tree.survives_change(before, after)
        ]:
            del self._cached_trees[key]

    def get(self, key: ResourceKey, version: str) -> _CachedTree | None:
        cached_tree = self._cached_trees.get(key)
        return cached_tree if cached_tree is not None and version and cached_tree.version == version else None

    def store(self, key: ResourceKey, version: str, nodes: list[ResourceNode]) -> None:
        if len(self._cached_trees) >= MAX_CACHED_TREES:
            del self._cached_trees[next(iter(self._cached_trees))]
        self._cached_trees[key] = _CachedTree(version, nodes)
