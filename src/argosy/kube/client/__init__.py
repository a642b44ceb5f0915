"""The `Cluster` protocol: the API that all code uses to talk to a Kubernetes cluster.

In: a verb, a key or a manifest. Out: a manifest, or a ClusterError. Never: knows Applications; retries a write.
`KubeCluster` (HTTP) and the embedded cluster implement it; callers cannot tell them apart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey


class KindInfo(NamedTuple):
    """How a cluster serves one kind: the preferred version, and all served versions."""

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
    """The media type of a patch."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Propagation(StrEnum):
    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True)
class User:
    """The user of a request. Requests with an empty name are refused."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] | None = None


class ClusterReader(Protocol):
    async def kinds(self) -> Catalog: ...

    async def get(self, key: ResourceKey) -> Manifest | None:
        """Return None if the object does not exist. A kind that is not served raises ClusterError 404."""

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing: ...

    def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        """Watch all changes after the resourceVersion `since`.

        Ends when the server ends the watch; raises Gone if `since` was compacted.
        """


class ClusterWriter(Protocol):
    """`manager` is the field manager of a write; if it is empty, the server derives it from the User-Agent."""

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        """Create an object. `subresource_of` is the parent of a subresource: a Pod for an Eviction."""

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
        """Patch an object. `api_version` is that of the patch and of the result; default: the preferred version."""

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
class VersionedCluster(Protocol):
    """A cluster that reports its version."""

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
        """Return a client of the same cluster that impersonates `user` in every request."""


class PodLogReader(Protocol):
    """Reads the logs of Pods. An add-on that runs Pods supplies one; without it, log requests are refused."""

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]: ...


@runtime_checkable
class SelectivePodLogReader(PodLogReader, Protocol):
    """Reads the logs of some Pods, and takes precedence over other readers for them."""

    def has_logs_of(self, pod: Manifest) -> bool: ...


@runtime_checkable
class PreviousPodLogReader(Protocol):
    """Reads the logs of a container before its last restart; None if they are not available."""

    def previous_lines(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None: ...


@runtime_checkable
class AccessDescriber(Protocol):
    """Explains how to reach the workload of a simulated Pod, which does not support exec or port-forward."""

    def describe_access(self, manifest: Manifest) -> str:
        """Return one sentence for a Pod or a Service."""


class AdmissionHandler(NamedTuple):
    """Mutates or refuses every write of one kind, like an admission webhook."""

    kind: GroupKind
    name: str  # named in the message of a refusal
    manager: str  # the field manager of the fields that it sets
    admit: Callable[[Manifest, Manifest | None], Manifest]  # (new manifest, old manifest); raises UserError
    warn: Callable[[Manifest], Sequence[str]] | None = None  # returns warnings; the object is stored anyway


@runtime_checkable
class AdmissionRegistry(Protocol):
    """A cluster that runs the admission handlers of add-ons. On others, add-ons rely on their controllers."""

    def register_admission(self, handlers: Sequence[AdmissionHandler]) -> AbstractContextManager[None]:
        """Register more admission handlers until the context exits."""


class SubresourceRequest(NamedTuple):
    """A POST to a subresource of an object. The user is already authorized."""

    live: Manifest
    body: Manifest
    dry_run: bool = False


class SubresourceExtension(NamedTuple):
    """Handles a subresource of a kind that its CRD declares with the annotation ACTIONS."""

    kind: GroupKind
    subresource: str
    handle: Callable[[SubresourceRequest, Cluster], Awaitable[Manifest]]  # raises UserError or ClusterError


@runtime_checkable
class SubresourceRegistry(Protocol):
    """A cluster that runs the subresource extensions of add-ons; other clusters have their own API servers for that."""

    def register_subresources(self, extensions: Sequence[SubresourceExtension]) -> AbstractContextManager[None]:
        """Register subresource extensions until the context exits."""


__all__ = [
    "AccessDescriber",
    "AdmissionHandler",
    "AdmissionRegistry",
    "Catalog",
    "Cluster",
    "ClusterReader",
    "ClusterWriter",
    "KindInfo",
    "Listing",
    "PatchKind",
    "PodLogReader",
    "PreviousPodLogReader",
    "Propagation",
    "SubresourceExtension",
    "SubresourceRegistry",
    "SubresourceRequest",
    "User",
    "VersionedCluster",
    "WatchEvent",
]
