"""A Cluster client that knows its own writes before the watch delivers them (read your writes).

In: calls of a Cluster. Out: the same responses; the newer of our own write and the cached object. Never: answers a read
from memory, except for the list of kinds; writes without the write fence of the caller, if there is one.
"""

from __future__ import annotations

import copy
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple

from argosy.gitops.live import is_slim
from argosy.kube.client import Catalog, Cluster, Listing, PatchKind, Propagation, User, WatchEvent
from argosy.kube.controller.write_fence import carried
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

MOST: Final = 20_000
TOLD: Final = 60.0  # seconds after which the watch must have delivered a write
EVENTS: Final = frozenset({GroupKind("", "Event"), GroupKind("events.k8s.io", "Event")})
LINGERING: Final = frozenset({GroupKind("", "Pod"), GroupKind("", "Namespace")})
KINDS_SECONDS: Final = 10.0  # a change of a CRD usually invalidates it earlier
DEFINING: Final = frozenset(
    {GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"), GroupKind("apiregistration.k8s.io", "APIService")}
)


class _Written(NamedTuple):
    manifest: Manifest
    at: float


class Doorway:
    """Implements `Cluster`, and remembers its writes until the watch delivers them."""

    def __init__(
        self,
        cluster: Cluster,
        cached: Callable[[ResourceKey], Manifest | None],
        clock: Callable[[], float] = time.monotonic,
        kept: Callable[[Manifest], Manifest] = lambda manifest: manifest,
    ) -> None:
        """`reduce_manifest` reduces a manifest to what the cache keeps of it."""
        self._cluster, self._cached, self._clock, self._kept = cluster, cached, clock, kept
        self._wrote: dict[ResourceKey, _Written] = {}
        self._deleted: dict[ResourceKey, Manifest] = {}  # with the cached object at that time
        self._writing = Counter[ResourceKey]()  # number of calls in flight
        self._gone: dict[ResourceKey, object] = {}  # uids whose deletion the watch reported during such a call
        self._kinds: Catalog = {}
        self._kinds_until = 0.0

    # -- newest state ------------------------------------------------------------------------------------------

    def newest(self, key: ResourceKey, cached: Manifest | None) -> Manifest | None:
        """Return our own write until the cache has it, otherwise the cached object."""
        wrote = self._wrote.get(key)
        if wrote is None:
            return cached
        if cached is not None and version_of(cached) >= version_of(wrote.manifest):
            del self._wrote[key]
            return cached
        return wrote.manifest

    def is_doubtful(self, key: ResourceKey) -> bool:
        """True if our write is so old that the object may have been deleted while no watch was open."""
        wrote = self._wrote.get(key)
        return wrote is not None and self._clock() >= wrote.at + TOLD

    def once(self, manifest: Manifest) -> Manifest:
        """Reuse our stored write response if the watch delivered the same revision.

        So there is one copy in memory, and results cached for one object hold for the other.
        """
        wrote = self._wrote.get(key_of(manifest))
        return wrote.manifest if wrote is not None and _are_same(wrote.manifest, manifest) else manifest

    def wrote(self, kind: GroupKind) -> set[ResourceKey]:
        """Return the keys of a kind that we wrote and the cache may not have."""
        return {key for key in self._wrote if key.group_kind == kind}

    def is_deleted(self, key: ResourceKey, cached: Manifest) -> bool:
        """True if we deleted the object, and the cache still has it."""
        if key not in self._deleted:
            return False
        if self._deleted[key] is cached:
            return True
        del self._deleted[key]
        return False

    def notice(self, before: Manifest | None, after: Manifest | None) -> None:
        """Handle a watch event: drop what is no longer needed."""
        if (manifest := after or before) is None:
            return
        key = key_of(manifest)
        if key.group_kind in DEFINING:
            self._kinds_until = 0.0
        if after is not None:
            self.newest(key, after)  # drops our write if the watch delivered it
        else:
            self._deleted.pop(key, None)
            uid, wrote = manifest["metadata"].get("uid"), self._wrote.get(key)
            if wrote is not None and wrote.manifest["metadata"].get("uid") == uid:
                del self._wrote[key]
            if key in self._writing:
                self._gone[key] = uid  # the response to a write may arrive after its deletion event

    def _keep(self, manifest: Manifest) -> Manifest:
        key = key_of(manifest)
        cached = self._cached(key)
        is_told = cached is not None and _are_same(cached, manifest) and not is_slim(cached)
        # the watch event may have arrived first
        manifest = cached if cached is not None and is_told else self._kept(manifest)
        if key.group_kind in DEFINING:
            self._kinds_until = 0.0
        self._deleted.pop(key, None)
        if key.group_kind in EVENTS:
            return manifest  # Events are not watched, so they would never be dropped
        if key in self._gone and self._gone[key] == manifest["metadata"].get("uid"):
            return manifest  # already deleted; no more watch events will come
        if version_of(manifest):  # k8s: only numeric versions can be compared
            self._wrote.pop(key, None)
            if not is_told:
                self._wrote[key] = _Written(manifest, self._clock())
            if len(self._wrote) > MOST:
                del self._wrote[next(iter(self._wrote))]
        return manifest

    # -- reading ------------------------------------------------------------------------------------------------

    async def kinds(self) -> Catalog:
        """Return the identical catalog as long as no kind changed."""
        if self._clock() >= self._kinds_until:
            # set before the call, so that a change during it causes another call
            self._kinds_until = self._clock() + KINDS_SECONDS
            try:
                found = await self._cluster.kinds()
            except BaseException:
                self._kinds_until = 0.0
                raise
            if found != self._kinds:
                self._kinds = found
        return self._kinds

    async def get(self, key: ResourceKey) -> Manifest | None:
        wrote = self._wrote.get(key)
        found = await self._cluster.get(key)
        if found is None and wrote is not None and self._wrote.get(key) is wrote:
            del self._wrote[key]  # written before this call, and deleted since
        return found

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        return await self._cluster.list(
            kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )

    def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        return self._cluster.watch(kind, since=since, namespace=namespace, labels=labels, metadata_only=metadata_only)

    def logs(
        self,
        key: ResourceKey,
        *,
        container: str = "",
        follow: bool = False,
        tail: int | None = None,
        since: int | None = None,
        previous: bool = False,
    ) -> AsyncIterator[str]:
        return self._cluster.logs(key, container=container, follow=follow, tail=tail, since=since, previous=previous)

    def acting_as(self, user: User) -> Doorway:
        """Impersonate a user; fencing and the memory of writes are shared."""
        other = copy.copy(self)
        other._cluster = self._cluster.acting_as(user)
        return other

    # -- writing ------------------------------------------------------------------------------------------------

    async def _changed(self, key: ResourceKey, call: Callable[[], Awaitable[Manifest]], verb: str) -> Manifest:
        self._writing[key] += 1
        try:
            return self._keep(await carried(call, f"{verb} {key}"))
        finally:
            self._writing[key] -= 1
            if not self._writing[key]:
                del self._writing[key]
                self._gone.pop(key, None)

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        def call() -> Awaitable[Manifest]:
            return self._cluster.create(manifest, subresource_of=subresource_of, dry_run=dry_run, manager=manager)

        is_kept = not (dry_run or subresource_of)
        if is_kept and manifest["metadata"].get("name"):
            return await self._changed(key_of(manifest), call, "create")
        made = await (call() if dry_run else carried(call, f"create {_told(manifest)}"))
        return self._keep(made) if is_kept else made

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, dry_run: bool = False) -> Manifest:
        def call() -> Awaitable[Manifest]:
            return self._cluster.apply(manifest, manager=manager, force=force, dry_run=dry_run)

        return await call() if dry_run else await self._changed(key_of(manifest), call, "apply")

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, manager: str = "") -> Manifest:
        def call() -> Awaitable[Manifest]:
            return self._cluster.replace(manifest, dry_run=dry_run, manager=manager)

        return await call() if dry_run else await self._changed(key_of(manifest), call, "replace")

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
        def call() -> Awaitable[Manifest]:
            return self._cluster.patch(
                key,
                patch,
                kind_of_patch=kind_of_patch,
                subresource=subresource,
                manager=manager,
                api_version=api_version,
                dry_run=dry_run,
            )

        return await call() if dry_run else await self._changed(key, call, "patch")

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None:
        cached = self._cached(key)
        await carried(
            lambda: self._cluster.delete(key, propagation=propagation, uid=uid, version=version, grace=grace),
            f"delete {key}",
        )
        self._wrote.pop(key, None)
        if cached is not None and propagation is Propagation.BACKGROUND and _goes_at_once(key, cached):
            self._deleted[key] = cached
        if len(self._deleted) > MOST:
            del self._deleted[next(iter(self._deleted))]


def _told(manifest: Manifest) -> str:
    """Describe a manifest for an error message; its name may be generated by the server."""
    metadata = manifest["metadata"]
    name = metadata.get("name") or metadata.get("generateName")
    return "/".join(filter(None, (manifest["kind"], metadata.get("namespace"), name)))


def _goes_at_once(key: ResourceKey, manifest: Manifest) -> bool:
    """k8s: Pods, Namespaces and objects with finalizers exist for a while after they were deleted."""
    metadata = manifest["metadata"]
    is_slow = key.group_kind in LINGERING or metadata.get("finalizers") or metadata.get("deletionTimestamp")
    return not is_slow


def _are_same(one: Manifest, other: Manifest) -> bool:
    """True for the same resourceVersion of the same object in the same apiVersion."""
    return one["apiVersion"] == other["apiVersion"] and all(
        one["metadata"].get(name) == other["metadata"].get(name) is not None for name in ("uid", "resourceVersion")
    )


def version_of(manifest: Manifest) -> int:
    """k8s: return a numeric resourceVersion, which can be compared; 0 if it is not numeric."""
    text = str(manifest["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0
