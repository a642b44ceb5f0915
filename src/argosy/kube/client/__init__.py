"""The one door to any cluster. In: a verb, a key or a manifest. Out: a manifest, or a ClusterError.

Never: knows of applications; retries a write on its own. `KubeCluster` (HTTP) and the embedded cluster stand behind it;
callers cannot tell which.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest


class KindInfo(NamedTuple):
    """How a cluster serves one kind: the version it prefers, and all that it serves."""

    version: str
    plural: str
    namespaced: bool
    versions: Sequence[str] = ()
    verbs: Sequence[str] = ()
    subresources: Sequence[str] = ()
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()


Catalog = Mapping[GroupKind, KindInfo]


class Listing(NamedTuple):
    items: Sequence[Manifest]
    version: str  # the resourceVersion to watch from


class WatchEvent(NamedTuple):
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    manifest: Manifest


class PatchKind(StrEnum):
    """The media type that tells a server how to read a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Propagation(StrEnum):
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True)
class User:
    """Who asks. An empty name is nobody: such a request is refused."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] | None = None


class ClusterReader(Protocol):
    async def kinds(self) -> Catalog: ...

    async def get(self, key: ResourceKey) -> Manifest | None:
        """None where there is no such object; a kind that is not served raises ClusterError 404."""

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing: ...

    def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        """Everything after `since`. Ends when the server ends it; raises Gone where `since` was compacted."""


class ClusterWriter(Protocol):
    """`manager` owns the fields that a write sets; where it is empty, the program that writes does."""

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        """`subresource_of` names what the manifest acts on: a Pod for an Eviction, an account for a token."""

    async def apply(
        self, manifest: Manifest, *, manager: str, force: bool = False, dry_run: bool = False
    ) -> Manifest: ...

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, manager: str = "") -> Manifest: ...

    async def patch(
        self,
        key: ResourceKey,
        patch: Any,
        *,
        kind_of_patch: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        manager: str = "",
        api_version: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        """`api_version` is the one whose fields the patch names, and that is answered; else the one preferred."""

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None: ...


@runtime_checkable
class Versioned(Protocol):
    """A cluster that can be asked for its version."""

    async def version(self) -> str: ...


class Cluster(ClusterReader, ClusterWriter, Protocol):
    """Raises ClusterError (Conflict, Gone, Invalid, Forbidden) and TransientError, and nothing else."""

    def logs(
        self,
        key: ResourceKey,
        *,
        container: str = "",
        follow: bool = False,
        tail: int | None = None,
        since: int | None = None,
        previous: bool = False,
    ) -> AsyncIterator[str]: ...

    def acting_as(self, user: User) -> Cluster:
        """The same cluster, every request impersonating `user`."""


class PodLogs(Protocol):
    """Who can tell what a Pod printed. An add-on that runs Pods supplies one; without it, logs are refused."""

    def lines(
        self, pod: Manifest, *, container: str, follow: bool, tail: int | None
    ) -> AsyncIterator[str]: ...


@runtime_checkable
class SomeLogs(PodLogs, Protocol):
    """Who tells what some Pods printed, and is asked first about those."""

    def knows(self, pod: Manifest) -> bool: ...


@runtime_checkable
class EarlierLogs(Protocol):
    """Who also knows what a container printed before it was restarted; None: of this one, nobody does."""

    def earlier(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None: ...


@runtime_checkable
class WayIn(Protocol):
    """Who plays Pods, and can tell how what they stand for is reached, since nobody can enter them."""

    def way_in(self, manifest: Manifest) -> str:
        """Of a Pod or a Service, in a sentence."""


class Admitter(NamedTuple):
    """Stands between every request for a kind and the store, as a webhook does: completes or refuses."""

    kind: GroupKind
    name: str  # told to whoever is refused
    manager: str  # who owns the fields that it sets
    admit: Callable[[Manifest, Manifest | None], Manifest]  # the new manifest, the one before; raises UserError
    warn: Callable[[Manifest], Sequence[str]] | None = None  # what is told to whoever writes it, which is stored anyway


@runtime_checkable
class Admitting(Protocol):
    """A cluster that asks the admitters of add-ons; others must be content with what controllers write later."""

    def admit_with(self, admitters: Sequence[Admitter]) -> AbstractContextManager[None]:
        """They are asked, beside those that are asked already, until this ends."""


class Asked(NamedTuple):
    """What somebody asks of an object, by a POST to a part of it. Who it is has been allowed to."""

    live: Manifest
    sent: Manifest
    dry_run: bool = False


class Performer(NamedTuple):
    """Does what is asked of objects of a kind, where the definition of the kind names that part (ACTIONS)."""

    kind: GroupKind
    part: str
    perform: Callable[[Asked, Cluster], Awaitable[Manifest]]  # raises UserError or ClusterError


@runtime_checkable
class Performing(Protocol):
    """A cluster that lets add-ons perform; others have servers of their own for that."""

    def perform_with(self, performers: Sequence[Performer]) -> AbstractContextManager[None]:
        """They perform until this ends."""


__all__ = [
    "Admitter",
    "Admitting",
    "Asked",
    "Catalog",
    "Cluster",
    "ClusterReader",
    "ClusterWriter",
    "EarlierLogs",
    "KindInfo",
    "Listing",
    "PatchKind",
    "Performer",
    "Performing",
    "PodLogs",
    "Propagation",
    "User",
    "Versioned",
    "WatchEvent",
    "WayIn",
]
