"""The read interface of a cache that this package needs, and the indexes it adds to one.

In: tracking settings. Out: index functions from a manifest to its index values. Never: reads a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from argosy.gitops.live.parent_references import infer_parent, is_child
from argosy.gitops.live.tracking import TrackingSettings, read_instance_name
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey

BY_OWNER: Final = "live.owner"  # instance name → objects that it tracks and that have no parent
BY_PARENT: Final = "live.parent"  # key → children without an ownerReference to it
BY_NAMESPACE: Final = "live.namespace"  # namespace → objects in it that have no parent

IndexFunction = Callable[[Manifest], Iterable[Hashable]]


class CacheReader(Protocol):
    """Reads from memory. Callers must not change the returned manifests."""

    def get(self, key: ResourceKey) -> Manifest | None: ...

    def find(self, index: str, value: Hashable) -> Sequence[Manifest]: ...

    def list_owned(self, uid: str) -> Sequence[Manifest]:
        """Return all objects with an ownerReference to this uid."""

    def list(self, kind: GroupKind, *, namespace: str = "") -> Sequence[Manifest]: ...


def build_indexes(tracking: TrackingSettings) -> Mapping[str, IndexFunction]:
    """Return the index functions to add to the cache, and to add again when the tracking settings change."""

    def index_by_instance(manifest: Manifest) -> Iterator[Hashable]:
        if (instance := read_instance_name(manifest, tracking)) and not is_child(manifest):
            yield instance

    return {BY_OWNER: index_by_instance, BY_PARENT: _index_by_inferred_parent, BY_NAMESPACE: _index_by_namespace}


def _index_by_inferred_parent(manifest: Manifest) -> Iterator[Hashable]:
    if (parent := infer_parent(manifest)) is not None:
        yield parent.key


def _index_by_namespace(manifest: Manifest) -> Iterator[Hashable]:
    namespace = manifest["metadata"].get("namespace")
    if namespace and not is_child(manifest):
        yield namespace
