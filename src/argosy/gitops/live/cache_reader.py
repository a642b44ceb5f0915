"""The read interface of a cache that this package needs, and the indexes it adds to one.

In: tracking settings. Out: index functions from a manifest to its index values. Never: reads a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from argosy.gitops.live.ownership import is_child, unsaid_parent
from argosy.gitops.live.tracking import Tracking, owner
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

BY_OWNER: Final = "live.owner"  # instance name → objects that it tracks and that have no parent
BY_PARENT: Final = "live.parent"  # key → children without an ownerReference to it
BY_NAMESPACE: Final = "live.namespace"  # namespace → objects in it that have no parent

Index = Callable[[Manifest], Iterable[Hashable]]


class CacheReader(Protocol):
    """Reads from memory. Callers must not change the returned manifests."""

    def get(self, key: ResourceKey) -> Manifest | None: ...

    def find(self, index: str, value: Hashable) -> Sequence[Manifest]: ...

    def owned(self, uid: str) -> Sequence[Manifest]:
        """Return all objects with an ownerReference to this uid."""

    def list(self, kind: GroupKind, *, namespace: str = "") -> Sequence[Manifest]: ...


def indexes(tracking: Tracking) -> Mapping[str, Index]:
    """Return the index functions to add to the cache, and to add again when the tracking settings change."""

    def owners(manifest: Manifest) -> Iterator[Hashable]:
        if (instance := owner(manifest, tracking)) and not is_child(manifest):
            yield instance

    return {BY_OWNER: owners, BY_PARENT: _unsaid, BY_NAMESPACE: _namespaces}


def _unsaid(manifest: Manifest) -> Iterator[Hashable]:
    if (parent := unsaid_parent(manifest)) is not None:
        yield parent.key


def _namespaces(manifest: Manifest) -> Iterator[Hashable]:
    namespace = manifest["metadata"].get("namespace")
    if namespace and not is_child(manifest):
        yield namespace
