"""The in-memory cache that informers fill. Reading it costs no API call.

In: manifests, from informers only. Out: manifests by key, kind, namespace, owner or a custom index.
Never: copies a manifest; callers must not change what they read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey

CacheIndexFunction = Callable[[Manifest], Iterable[Hashable]]
IndexEntries = dict[Hashable, dict[ResourceKey, None]]  # a dict keeps the order of arrival, which a set does not


class InformerCache:
    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], dict[ResourceKey, Manifest]] = {}  # by group and kind
        self._indexes: dict[str, tuple[CacheIndexFunction, IndexEntries]] = {}
        self.add_index("namespace", _index_by_namespace)
        self.add_index("owner", _index_by_owner)

    def add_index(self, name: str, index_function: CacheIndexFunction) -> None:
        """Add an index: `find(name, value)` then returns every manifest for which `values` yields `value`."""
        self._indexes[name] = (index_function, {})
        for manifests in self._kinds.values():
            for key, manifest in manifests.items():
                self._add_to_index(self._indexes[name], key, manifest)

    def get(self, key: ResourceKey) -> Manifest | None:
        manifests = self._kinds.get(key[:2])
        return None if manifests is None else manifests.get(key)

    def list(self, kind: GroupKind, *, namespace: str = "", labels: Mapping[str, str] | None = None) -> ManifestList:
        """List manifests of a kind, optionally only those in a namespace and with all of the labels."""
        by_key = self._kinds.get(kind, {})
        if namespace:
            _, entries = self._indexes["namespace"]
            candidates: Iterable[Manifest] = (by_key[key] for key in entries.get((kind, namespace), ()))
        else:
            candidates = by_key.values()
        return [manifest for manifest in candidates if not labels or _has_labels(manifest, labels)]

    def count(self) -> int:
        """Return the number of manifests of all kinds."""
        return sum(map(len, self._kinds.values()))

    def kinds(self) -> Iterable[GroupKind]:
        """Return the kinds that have or had at least one manifest."""
        return [GroupKind(*kind) for kind in self._kinds]

    def keys(self, kind: GroupKind) -> Sequence[ResourceKey]:
        return tuple(self._kinds.get(kind, ()))

    def list_owned(self, uid: str) -> ManifestList:
        """List manifests of any kind with an ownerReference to this uid."""
        return self.find("owner", uid)

    def find(self, index: str, value: Hashable) -> ManifestList:
        keys = self._indexes[index][1].get(value, ())
        return [self._kinds[key[:2]][key] for key in keys]

    # -- for informers

    def put(self, manifest: Manifest) -> Manifest | None:
        """Store a manifest and return the one that it replaces."""
        key = key_of(manifest)
        manifests = self._kinds.setdefault(key.group_kind, {})
        old = manifests.get(key)
        manifests[key] = manifest
        for index in self._indexes.values():
            if old is not None:
                self._remove_from_index(index, key, old)
            self._add_to_index(index, key, manifest)
        return old

    def drop(self, key: ResourceKey) -> Manifest | None:
        old = self._kinds.get(key.group_kind, {}).pop(key, None)
        if old is not None:
            for index in self._indexes.values():
                self._remove_from_index(index, key, old)
        return old

    @staticmethod
    def _add_to_index(index: tuple[CacheIndexFunction, IndexEntries], key: ResourceKey, manifest: Manifest) -> None:
        index_function, entries = index
        for value in index_function(manifest):
            entries.setdefault(value, {})[key] = None

    @staticmethod
    def _remove_from_index(
        index: tuple[CacheIndexFunction, IndexEntries], key: ResourceKey, manifest: Manifest
    ) -> None:
        index_function, entries = index
        for value in index_function(manifest):
            if keys := entries.get(value):
                keys.pop(key, None)
                if not keys:
                    del entries[value]


ManifestList = list[Manifest]


def _index_by_namespace(manifest: Manifest) -> Iterator[Hashable]:
    key = key_of(manifest)
    if key.namespace:
        yield key.group_kind, key.namespace


def _index_by_owner(manifest: Manifest) -> Iterator[Hashable]:
    for reference in manifest["metadata"].get("ownerReferences") or ():
        yield reference["uid"]


def _has_labels(manifest: Manifest, labels: Mapping[str, str]) -> bool:
    manifest_labels = manifest["metadata"].get("labels") or {}
    return all(manifest_labels.get(name) == value for name, value in labels.items())
