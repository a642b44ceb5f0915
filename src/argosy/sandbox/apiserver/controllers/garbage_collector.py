"""Garbage collector: background, foreground and orphan deletion of dependents.

k8s: an owner is identified by its uid; it must be cluster-scoped or in the namespace of the dependent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from argosy.kube.client import Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.sandbox.apiserver.controllers.controller import KeyedController
from argosy.sandbox.apiserver.deletion import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.store import StoreEntry, StoreEvent

MAX_ABSENT_OWNERS = 10_000


class StoreKey(NamedTuple):
    bucket: str
    namespace: str
    name: str


class GarbageCollector(KeyedController[StoreKey]):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._dependents: dict[str, set[StoreKey]] = {}  # by the owner's uid
        self._owners: dict[StoreKey, frozenset[tuple[str, bool]]] = {}  # uid, blockOwnerDeletion
        self._waiting_owners: dict[str, StoreKey] = {}  # owners with a foreground or orphan deletion, by uid
        self._deleted_owners: dict[str, None] = {}  # uids of the most recently deleted owners
        for served in registry.catalog.list_stored_kinds():
            for entry in registry.store.list(served.bucket):
                self._index_object(StoreKey(served.bucket, entry.namespace, entry.name), entry.body)

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            key = StoreKey(event.bucket, event.namespace, event.name)
            if event.type == "DELETED":
                self._remove_from_index(key)
                self._enqueue_dependents(event)
            else:
                self._index_object(key, event.body)

    def _index_object(self, key: StoreKey, body: bytes) -> None:
        is_terminating = b'"deletionTimestamp"' in body
        if b'"ownerReferences"' not in body:
            self._remove_from_index(key)
        else:
            references = orjson.loads(body)["metadata"].get("ownerReferences") or []
            owners = frozenset(
                (reference["uid"], bool(reference.get("blockOwnerDeletion"))) for reference in references
            )
            if owners != self._owners.get(key):
                self._remove_from_index(key)
                self._owners[key] = owners
                for uid, _ in owners:
                    self._dependents.setdefault(uid, set()).add(key)
                self.enqueue(key)
                self._enqueue_waiting_owners(references, key.namespace)
        if is_terminating and (FOREGROUND_FINALIZER.encode() in body or f'"{ORPHAN_FINALIZER}"'.encode() in body):
            self._waiting_owners[orjson.loads(body)["metadata"]["uid"]] = key
            self.enqueue(key)

    def _remove_from_index(self, key: StoreKey) -> None:
        for uid, _ in self._owners.pop(key, ()):
            if uid in self._waiting_owners:  # the owner waits for one dependent less
                self.enqueue(self._waiting_owners[uid])
            if (dependents := self._dependents.get(uid)) is not None:
                dependents.discard(key)
                if not dependents:
                    del self._dependents[uid]

    def _enqueue_dependents(self, event: StoreEvent) -> None:
        """Enqueue the dependents of a deleted object, and owners that wait for its deletion."""
        metadata = orjson.loads(event.body)["metadata"]
        self._waiting_owners.pop(metadata["uid"], None)
        if dependents := self._dependents.get(metadata["uid"]):
            self._deleted_owners[metadata["uid"]] = None
            while len(self._deleted_owners) > MAX_ABSENT_OWNERS:
                del self._deleted_owners[next(iter(self._deleted_owners))]
            for dependent in dependents:
                self.enqueue(dependent)
        self._enqueue_waiting_owners(metadata.get("ownerReferences") or [], event.namespace)

    def _enqueue_waiting_owners(self, references: Sequence[Manifest], namespace: str) -> None:
        """Enqueue owners that wait for their dependents in a foreground deletion."""
        for reference in references:
            owner = self._find_owner(reference, namespace)
            if owner is not None and _waits_for_dependents(owner[1].body):
                self.enqueue(StoreKey(owner[0].bucket, owner[1].namespace, owner[1].name))

    async def reconcile(self, key: StoreKey) -> None:
        entry = self.registry.store.get_latest(*key)
        served = self._find_kind(key.bucket)
        if entry is None or served is None:
            return
        manifest = served.read_entry(entry)
        metadata = manifest["metadata"]
        finalizers = metadata.get("finalizers") or []
        if metadata.get("deletionTimestamp"):
            if ORPHAN_FINALIZER in finalizers:
                await self._orphan_dependents(served, entry, manifest)
            elif FOREGROUND_FINALIZER in finalizers:
                await self._delete_dependents_first(served, entry, manifest)
            return
        await self._delete_if_orphaned(served, entry, manifest)

    async def _delete_if_orphaned(self, served: ApiKind, entry: StoreEntry, manifest: Manifest) -> None:
        """Delete the object if no owner is left; otherwise remove references to owners that are gone."""
        references = manifest["metadata"].get("ownerReferences") or []
        if not references:
            return
        live_references: list[Manifest] = []
        waiting_references: list[Manifest] = []
        for reference in references:
            if self._is_owner_unknowable(reference, entry.namespace):
                live_references.append(reference)
            elif owner := self._find_owner(reference, entry.namespace):
                (waiting_references if _waits_for_dependents(owner[1].body) else live_references).append(reference)
        uid = manifest["metadata"]["uid"]
        if live_references:
            if len(live_references) < len(references):
                metadata = {**manifest["metadata"], "ownerReferences": live_references}
                await self.update_object(served, entry.namespace, entry.name, {**manifest, "metadata": metadata})
        elif waiting_references and uid in self._dependents:
            if any(_waits_for_dependents(dependent.body) for _, dependent in self._list_dependents(uid)):
                await self._clear_block_owner_deletion(served, entry, manifest)
            await self.delete_object(served, entry, uid, Propagation.FOREGROUND)
        else:
            policies = {ORPHAN_FINALIZER: Propagation.ORPHAN, FOREGROUND_FINALIZER: Propagation.FOREGROUND}
            finalizers = manifest["metadata"].get("finalizers") or []
            policy = next(
                (policies[finalizer] for finalizer in finalizers if finalizer in policies), Propagation.BACKGROUND
            )
            await self.delete_object(served, entry, uid, policy)

    async def _clear_block_owner_deletion(self, served: ApiKind, entry: StoreEntry, manifest: Manifest) -> None:
        """k8s: owners in a cycle would wait for each other, so one of them stops blocking."""
        references = [
            {**reference, "blockOwnerDeletion": False} for reference in manifest["metadata"]["ownerReferences"]
        ]
        metadata = {**manifest["metadata"], "ownerReferences": references}
        await self.update_object(served, entry.namespace, entry.name, {**manifest, "metadata": metadata})

    def _is_owner_unknowable(self, reference: Manifest, namespace: str) -> bool:
        """k8s: an owner of an unserved kind, or a namespaced owner of a cluster-scoped object, deletes nothing."""
        if reference["uid"] in self._deleted_owners:
            return False
        group, _ = split_api_version(reference["apiVersion"])
        served = self.registry.catalog.find_kind(GroupKind(group, reference["kind"]))
        return served is None or (served.resource.namespaced and not namespace)

    async def _delete_dependents_first(self, served: ApiKind, entry: StoreEntry, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        is_blocked = False
        for key, dependent in list(self._list_dependents(uid)):
            metadata = orjson.loads(dependent.body)["metadata"]
            reference = next(
                owner_reference for owner_reference in metadata["ownerReferences"] if owner_reference["uid"] == uid
            )
            is_blocked = is_blocked or bool(reference.get("blockOwnerDeletion"))
            if not metadata.get("deletionTimestamp"):
                self.enqueue(key)
        if not is_blocked:
            await self._remove_finalizer(served, entry, manifest, FOREGROUND_FINALIZER)

    async def _orphan_dependents(self, served: ApiKind, entry: StoreEntry, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        for key, dependent in list(self._list_dependents(uid)):
            kind = self._find_kind(key.bucket)
            assert kind is not None
            child = kind.read_entry(dependent)
            references = [reference for reference in child["metadata"]["ownerReferences"] if reference["uid"] != uid]
            metadata = {**child["metadata"], "ownerReferences": references}
            await self.update_object(kind, key.namespace, key.name, {**child, "metadata": metadata})
        await self._remove_finalizer(served, entry, manifest, ORPHAN_FINALIZER)

    async def _remove_finalizer(self, served: ApiKind, entry: StoreEntry, manifest: Manifest, finalizer: str) -> None:
        finalizers = [
            other_finalizer for other_finalizer in manifest["metadata"]["finalizers"] if other_finalizer != finalizer
        ]
        metadata = {**manifest["metadata"], "finalizers": finalizers}
        await self.update_object(served, entry.namespace, entry.name, {**manifest, "metadata": metadata})

    def _list_dependents(self, uid: str) -> Iterator[tuple[StoreKey, StoreEntry]]:
        for key in sorted(self._dependents.get(uid, ())):
            if (entry := self.registry.store.get_latest(*key)) is not None:
                yield key, entry

    def _find_owner(self, reference: Manifest, namespace: str) -> tuple[ApiKind, StoreEntry] | None:
        group, _ = split_api_version(reference["apiVersion"])
        served = self.registry.catalog.find_kind(GroupKind(group, reference["kind"]))
        if served is None:
            return None
        owner_namespace = namespace if served.resource.namespaced else ""
        entry = self.registry.store.get_latest(served.bucket, owner_namespace, reference["name"])
        if entry is None or orjson.loads(entry.body)["metadata"]["uid"] != reference["uid"]:
            return None
        return served, entry

    def _find_kind(self, bucket: str) -> ApiKind | None:
        return next((served for served in self.registry.catalog.list_stored_kinds() if served.bucket == bucket), None)


def _waits_for_dependents(body: bytes) -> bool:
    if b'"deletionTimestamp"' not in body or FOREGROUND_FINALIZER.encode() not in body:
        return False
    metadata = orjson.loads(body)["metadata"]
    return "deletionTimestamp" in metadata and FOREGROUND_FINALIZER in (metadata.get("finalizers") or [])
