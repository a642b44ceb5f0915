"""What this room needs of a cache, and the indexes that it needs in it.

In: settings for tracking. Out: functions from a manifest to what it is found by. Never: a second look at the cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from argosy.gitops.live.ownership import is_child, unsaid_parent
from argosy.gitops.live.tracking import Tracking, owner
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

BY_OWNER: Final = "live.owner"  # an instance name → what is tracked by it and nobody's child
BY_PARENT: Final = "live.parent"  # a key → children that do not say so in ownerReferences
BY_NAMESPACE: Final = "live.namespace"  # a namespace → what is in it and nobody's child

Index = Callable[[Manifest], Iterable[Hashable]]


class CacheReader(Protocol):
    """Reading costs nothing; what is read must not be changed."""

    def get(self, key: ResourceKey) -> Manifest | None: ...

    def find(self, index: str, value: Hashable) -> Sequence[Manifest]: ...

    def owned(self, uid: str) -> Sequence[Manifest]:
        """All that name the owner with this uid."""

    def list(self, kind: GroupKind, *, namespace: str = "") -> Sequence[Manifest]: ...


def indexes(tracking: Tracking) -> Mapping[str, Index]:
    """To be given to the cache, and again when tracking changes."""

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
