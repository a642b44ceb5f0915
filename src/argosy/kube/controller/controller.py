"""What a controller is: a name, what wakes it, and one function of one key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from argosy.kube.client import Cluster
from argosy.kube.controller.cache import Cache
from argosy.kube.controller.clock import Clock
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of

Mapper = Callable[[Manifest], Iterable[ResourceKey]]


class Watch(NamedTuple):
    """A change to any manifest of this kind wakes the keys that `to` names, of the manifest before and after."""

    kind: GroupKind
    to: Mapper
    metadata_only: bool = False  # the cache holds whole manifests if any watch of the kind needs them


class Requeue(NamedTuple):
    after: float  # seconds; an earlier change of the key makes it unnecessary


@dataclass(frozen=True)
class Context:
    cluster: Cluster
    cache: Cache
    clock: Clock


class Controller(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def watches(self) -> Sequence[Watch]: ...

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        """Read the whole state of `key`, take one step towards what it asks, and return.

        Raises UserError: no retry until something changes. Anything else: retried with backoff.
        """


def itself(manifest: Manifest) -> Iterable[ResourceKey]:
    yield key_of(manifest)


def owner(kind: GroupKind) -> Mapper:
    """The owners of this kind that a manifest names."""

    def owners(manifest: Manifest) -> Iterable[ResourceKey]:
        metadata = manifest["metadata"]
        for reference in metadata.get("ownerReferences") or ():
            group, _ = split_api_version(reference["apiVersion"])
            if (group, reference["kind"]) == kind:
                yield ResourceKey(group, reference["kind"], metadata.get("namespace") or "", reference["name"])

    return owners
