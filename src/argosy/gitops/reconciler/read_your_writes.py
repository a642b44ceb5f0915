"""A Cluster client that knows its own writes before the watch delivers them (read your writes).

In: calls of a Cluster. Out: the same responses; the newer of our own write and the cached object. Never: answers a read
from memory, except for the list of kinds; writes without the write fence of the caller, if there is one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple, Self, TypeVar

from argosy.gitops.live import is_trimmed
from argosy.kube.client import Catalog, Cluster, Propagation, User
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send
from argosy.kube.controller.write_fence import run_write
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.json_equality import is_equal_json
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CRD, EVENT, NAMESPACE, POD

T = TypeVar("T")
MAX_REMEMBERED_WRITES: Final = 20_000
WATCH_DELIVERY_SECONDS: Final = 60.0  # seconds after which the watch must have delivered a write
EVENT_KINDS: Final = frozenset({EVENT, GroupKind("events.k8s.io", "Event")})
SLOWLY_DELETED_KINDS: Final = frozenset({POD, NAMESPACE})
KINDS_CACHE_SECONDS: Final = 10.0  # a change of a CRD usually invalidates it earlier
DEFINING_KINDS: Final = frozenset({CRD, GroupKind("apiregistration.k8s.io", "APIService")})


class _OwnWrite(NamedTuple):
    manifest: Manifest
    written_at: float


class ReadYourWritesClient(ForwardingCluster):
    """Remembers its writes until the watch delivers them."""

    def __init__(
        self,
        cluster: Cluster,
        get_cached: Callable[[ResourceKey], Manifest | None],
        clock: Callable[[], float] = time.monotonic,
        reduce_manifest: Callable[[Manifest], Manifest] = lambda manifest: manifest,
    ) -> None:
        """`reduce_manifest` reduces a manifest to what the cache keeps of it."""
        super().__init__(cluster)
        self._get_cached, self._clock, self._reduce_manifest = get_cached, clock, reduce_manifest
        self._writes: dict[ResourceKey, _OwnWrite] = {}
        self._deletions: dict[ResourceKey, Manifest] = {}  # with the cached object at that time
        self._calls_in_flight = Counter[ResourceKey]()  # number of calls in flight
        self._deleted_uids: dict[ResourceKey, object] = {}  # uids whose deletion the watch reported during such a call
        self._kinds: Catalog = {}
        self._kinds_until = 0.0

    # -- newest state ------------------------------------------------------------------------------------------

    def find_newest(self, key: ResourceKey, cached: Manifest | None) -> Manifest | None:
        """Return our own write until the cache has it, otherwise the cached object."""
        own_write = self._writes.get(key)
        if own_write is None:
            return cached
        if cached is not None and numeric_version(cached) >= numeric_version(own_write.manifest):
            del self._writes[key]
            return cached
        return own_write.manifest

    def may_have_missed_delete(self, key: ResourceKey) -> bool:
        """True if our write is so old that the object may have been deleted while no watch was open."""
        own_write = self._writes.get(key)
        return own_write is not None and self._clock() >= own_write.written_at + WATCH_DELIVERY_SECONDS

    def reuse_own_write(self, manifest: Manifest) -> Manifest:
        """Reuse our stored write response if the watch delivered the same revision.

        So there is one copy in memory, and results cached for one object hold for the other.
        """
        own_write = self._writes.get(key_of(manifest))
        return (
            own_write.manifest
            if own_write is not None and _is_same_revision(own_write.manifest, manifest)
            else manifest
        )

    def list_written(self, kind: GroupKind) -> set[ResourceKey]:
        """Return the keys of a kind that we wrote and the cache may not have."""
        return {key for key in self._writes if key.group_kind == kind}

    def is_deleted(self, key: ResourceKey, cached: Manifest) -> bool:
        """True if we deleted the object, and the cache still has it."""
        if key not in self._deletions:
            return False
        if self._deletions[key] is cached:
            return True
        del self._deletions[key]
        return False

    def on_watch_event(self, before: Manifest | None, after: Manifest | None) -> None:
        """Handle a watch event: drop what is no longer needed."""
        if (manifest := after or before) is None:
            return
        key = key_of(manifest)
        if key.group_kind in DEFINING_KINDS:
            self._kinds_until = 0.0
        if after is not None:
            self.find_newest(key, after)  # drops our write if the watch delivered it
        else:
            self._deletions.pop(key, None)
            uid, own_write = manifest["metadata"].get("uid"), self._writes.get(key)
            if own_write is not None and own_write.manifest["metadata"].get("uid") == uid:
                del self._writes[key]
            if key in self._calls_in_flight:
                self._deleted_uids[key] = uid  # the response to a write may arrive after its deletion event

    def _remember_write(self, manifest: Manifest) -> Manifest:
        key = key_of(manifest)
        cached = self._get_cached(key)
        is_delivered = cached is not None and _is_same_revision(cached, manifest) and not is_trimmed(cached)
        # the watch event may have arrived first
        if cached is not None and is_delivered:
            manifest = cached
        else:
            manifest = _reuse_spec(self._reduce_manifest(manifest), self.find_newest(key, cached))
        if key.group_kind in DEFINING_KINDS:
            self._kinds_until = 0.0
        self._deletions.pop(key, None)
        if key in self._deleted_uids and self._deleted_uids[key] == manifest["metadata"].get("uid"):
            return manifest  # already deleted; no more watch events will come
        if numeric_version(manifest):  # k8s: only numeric versions can be compared
            self._writes.pop(key, None)
            if not is_delivered:
                self._writes[key] = _OwnWrite(manifest, self._clock())
            if len(self._writes) > MAX_REMEMBERED_WRITES:
                del self._writes[next(iter(self._writes))]
        return manifest

    # -- reading ------------------------------------------------------------------------------------------------

    async def kinds(self) -> Catalog:
        """Return the identical catalog as long as no kind changed."""
        if self._clock() >= self._kinds_until:
            # set before the call, so that a change during it causes another call
            self._kinds_until = self._clock() + KINDS_CACHE_SECONDS
            try:
                kinds = await super().kinds()
            except BaseException:
                self._kinds_until = 0.0
                raise
            if kinds != self._kinds:
                self._kinds = kinds
        return self._kinds

    async def get(self, key: ResourceKey) -> Manifest | None:
        own_write = self._writes.get(key)
        manifest = await super().get(key)
        if manifest is None and own_write is not None and self._writes.get(key) is own_write:
            del self._writes[key]  # written before this call, and deleted since
        return manifest

    def acting_as(self, user: User) -> Self:
        """Impersonate a user; fencing and the memory of writes are shared."""
        return self._wrap(self._cluster.acting_as(user))

    # -- writing ------------------------------------------------------------------------------------------------

    async def _send(self, call: Call, send: Send[T]) -> T:
        return await (run_write(send, call) if call.is_write else send())

    async def _write(self, call: Call, send: Send[Manifest]) -> Manifest:
        """Remember what was written. The response for a subresource is another object, such as an Eviction."""
        key = call.key
        # Events are not watched, so they would never be dropped.
        if key is None or call.is_dry_run or call.subresource_of or key.group_kind in EVENT_KINDS:
            return await super()._write(call, send)
        self._calls_in_flight[key] += 1
        try:
            return self._remember_write(await super()._write(call, send))
        finally:
            self._calls_in_flight[key] -= 1
            if not self._calls_in_flight[key]:
                del self._calls_in_flight[key]
                self._deleted_uids.pop(key, None)

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None:
        cached = self._get_cached(key)
        await super().delete(key, propagation=propagation, uid=uid, version=version, grace=grace)
        self._writes.pop(key, None)
        if cached is not None and propagation is Propagation.BACKGROUND and _is_deleted_at_once(key, cached):
            self._deletions[key] = cached
        if len(self._deletions) > MAX_REMEMBERED_WRITES:
            del self._deletions[next(iter(self._deletions))]


def _is_deleted_at_once(key: ResourceKey, manifest: Manifest) -> bool:
    """k8s: Pods, Namespaces and objects with finalizers exist for a while after they were deleted."""
    metadata = manifest["metadata"]
    is_slow = key.group_kind in SLOWLY_DELETED_KINDS or metadata.get("finalizers") or metadata.get("deletionTimestamp")
    return not is_slow


def _reuse_spec(manifest: Manifest, previous: Manifest | None) -> Manifest:
    """Reuse the spec of the previous version if it is equal: most writes change only the status."""
    if previous is None or "spec" not in manifest or not is_equal_json(previous.get("spec"), manifest["spec"]):
        return manifest
    return {**manifest, "spec": previous["spec"]}


def _is_same_revision(manifest: Manifest, other: Manifest) -> bool:
    """True for the same resourceVersion of the same object in the same apiVersion."""
    return manifest["apiVersion"] == other["apiVersion"] and all(
        manifest["metadata"].get(name) == other["metadata"].get(name) is not None for name in ("uid", "resourceVersion")
    )


def numeric_version(manifest: Manifest) -> int:
    """k8s: return a numeric resourceVersion, which can be compared; 0 if it is not numeric."""
    text = str(manifest["metadata"].get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0
