"""The in-memory cache that informers fill. Reading it costs no API call.

In: manifests, from informers only. Out: manifests by key, kind, namespace, owner or a custom index.
Never: copies a manifest; callers must not change what they read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

Index = Callable[[Manifest], Iterable[Hashable]]
Entries = dict[Hashable, dict[ResourceKey, None]]  # a dict keeps the order of arrival, which a set does not


class Cache:
    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str], dict[ResourceKey, Manifest]] = {}  # by group and kind
        self._indexes: dict[str, tuple[Index, Entries]] = {}
        self.index("namespace", _namespaces)
        self.index("owner", _owners)

    def index(self, name: str, values: Index) -> None:
        """Add an index: `find(name, value)` then returns every manifest for which `values` yields `value`."""
        self._indexes[name] = (values, {})
        for manifests in self._kinds.values():
            for key, manifest in manifests.items():
                self._enter(self._indexes[name], key, manifest)

    def get(self, key: ResourceKey) -> Manifest | None:
        known = self._kinds.get(key[:2])
        return None if known is None else known.get(key)

    def list(self, kind: GroupKind, *, namespace: str = "", labels: Mapping[str, str] | None = None) -> Manifests:
        """List manifests of a kind, optionally only those in a namespace and with all of the labels."""
        known = self._kinds.get(kind, {})
        if namespace:
            _, entries = self._indexes["namespace"]
            found: Iterable[Manifest] = (known[key] for key in entries.get((kind, namespace), ()))
        else:
            found = known.values()
        return [manifest for manifest in found if not labels or _carries(manifest, labels)]

    def count(self) -> int:
        """Return the number of manifests of all kinds."""
        return sum(map(len, self._kinds.values()))

    def kinds(self) -> Iterable[GroupKind]:
        """Return the kinds that have or had at least one manifest."""
        return [GroupKind(*kind) for kind in self._kinds]

    def keys(self, kind: GroupKind) -> Sequence[ResourceKey]:
        return tuple(self._kinds.get(kind, ()))

    def owned(self, uid: str) -> Manifests:
        """List manifests of any kind with an ownerReference to this uid."""
        return self.find("owner", uid)

    def find(self, index: str, value: Hashable) -> Manifests:
        keys = self._indexes[index][1].get(value, ())
        return [self._kinds[key[:2]][key] for key in keys]

    # -- for informers

    def put(self, manifest: Manifest) -> Manifest | None:
        """Store a manifest and return the one that it replaces."""
        key = key_of(manifest)
        manifests = self._kinds.setdefault(key.group_kind, {})
        before = manifests.get(key)
        manifests[key] = manifest
        for index in self._indexes.values():
            if before is not None:
                self._leave(index, key, before)
            self._enter(index, key, manifest)
        return before

    def drop(self, key: ResourceKey) -> Manifest | None:
        before = self._kinds.get(key.group_kind, {}).pop(key, None)
        if before is not None:
            for index in self._indexes.values():
                self._leave(index, key, before)
        return before

    @staticmethod
    def _enter(index: tuple[Index, Entries], key: ResourceKey, manifest: Manifest) -> None:
        values, entries = index
        for value in values(manifest):
            entries.setdefault(value, {})[key] = None

    @staticmethod
    def _leave(index: tuple[Index, Entries], key: ResourceKey, manifest: Manifest) -> None:
        values, entries = index
        for value in values(manifest):
            if keys := entries.get(value):
                keys.pop(key, None)
                if not keys:
                    del entries[value]


Manifests = list[Manifest]


def _namespaces(manifest: Manifest) -> Iterator[Hashable]:
    key = key_of(manifest)
    if key.namespace:
        yield key.group_kind, key.namespace


def _owners(manifest: Manifest) -> Iterator[Hashable]:
    for reference in manifest["metadata"].get("ownerReferences") or ():
        yield reference["uid"]


def _carries(manifest: Manifest, labels: Mapping[str, str]) -> bool:
    mine = manifest["metadata"].get("labels") or {}
    return all(mine.get(name) == value for name, value in labels.items())
