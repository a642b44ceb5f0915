"""The Controller protocol: a name, the kinds that it watches, and `reconcile(key)`.

In: manifests. Out: keys to reconcile. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from argosy.kube.client import Cluster
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import Clock
from argosy.kube.controller.informer import ChangeListener
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version

KeyMapper = Callable[[Manifest], Iterable[ResourceKey]]


class Watch(NamedTuple):
    """On a change of any manifest of this kind, enqueue the keys that `to` returns for the old and new manifest."""

    kind: GroupKind
    to: KeyMapper
    metadata_only: bool = False  # the cache still holds full manifests if another watch of the kind needs them


EVERY_KIND: Final = (GroupKind("*", "*"),)  # all kinds that are watched at all


class ChangeWatch(NamedTuple):
    """On a change of any manifest of these kinds, call `on_change` with the old and the new manifest."""

    kinds: tuple[GroupKind, ...]
    on_change: ChangeListener
    is_required: bool = False  # the kinds are watched in any case, and nothing starts before they are listed

    def covers(self, kind: GroupKind) -> bool:
        return self.kinds is EVERY_KIND or kind in self.kinds


class Requeue(NamedTuple):
    after: float  # seconds; cancelled if the key is reconciled earlier


@dataclass(frozen=True)
class ControllerContext:
    cluster: Cluster
    cache: InformerCache
    clock: Clock


class KeyReconciler(Protocol):
    """A controller without its watches, for a caller that fills the queue."""

    @property
    def name(self) -> str: ...

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        """Read the whole state of `key`, take one step towards the desired state, and return.

        After UserError the key is not retried until something changes; after any other error, with backoff.
        """


class Controller(KeyReconciler, Protocol):
    @property
    def watches(self) -> Sequence[Watch]: ...


def itself(manifest: Manifest) -> Iterable[ResourceKey]:
    yield key_of(manifest)


def map_to_owner(kind: GroupKind) -> KeyMapper:
    """Return a mapper from a manifest to its owners of this kind."""

    def map_manifest(manifest: Manifest) -> Iterable[ResourceKey]:
        metadata = manifest["metadata"]
        for reference in metadata.get("ownerReferences") or ():
            group, _ = split_api_version(reference["apiVersion"])
            if (group, reference["kind"]) == kind:
                yield ResourceKey(group, reference["kind"], metadata.get("namespace") or "", reference["name"])

    return map_manifest
