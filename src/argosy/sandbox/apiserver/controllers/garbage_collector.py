"""Garbage collector: background, foreground and orphan deletion of dependents.

k8s: an owner is identified by its uid; it must be cluster-scoped or in the namespace of the dependent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from argosy.kube.client import Propagation
from argosy.kube.names import GroupKind, split_api_version
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.controllers.controller import Keeper
from argosy.sandbox.apiserver.deletion import FOREGROUND, ORPHAN
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Entry, Event

MOST_ABSENT = 10_000


class Item(NamedTuple):
    bucket: str
    namespace: str
    name: str


class Garbage(Keeper[Item]):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._dependents: dict[str, set[Item]] = {}  # by the owner's uid
        self._owners: dict[Item, frozenset[tuple[str, bool]]] = {}  # uid, blockOwnerDeletion
        self._leaving: dict[str, Item] = {}  # owners with a foreground or orphan deletion, by uid
        self._absent: dict[str, None] = {}  # uids of the most recently deleted owners
        for served in registry.catalog.stored():
            for entry in registry.store.list(served.bucket):
                self._learn(Item(served.bucket, entry.namespace, entry.name), entry.body)

    def notice(self, events: Sequence[Event]) -> None:
        for event in events:
            item = Item(event.bucket, event.namespace, event.name)
            if event.type == "DELETED":
                self._forget(item)
                self._left_behind(event)
            else:
                self._learn(item, event.body)

    def _learn(self, item: Item, body: bytes) -> None:
        dying = b'"deletionTimestamp"' in body
        if b'"ownerReferences"' not in body:
            self._forget(item)
        else:
            references = orjson.loads(body)["metadata"].get("ownerReferences") or []
            owners = frozenset((each["uid"], bool(each.get("blockOwnerDeletion"))) for each in references)
            if owners != self._owners.get(item):
                self._forget(item)
                self._owners[item] = owners
                for uid, _ in owners:
                    self._dependents.setdefault(uid, set()).add(item)
                self.add(item)
                self._tell_waiting(references, item.namespace)
        if dying and (FOREGROUND.encode() in body or f'"{ORPHAN}"'.encode() in body):
            self._leaving[orjson.loads(body)["metadata"]["uid"]] = item
            self.add(item)

    def _forget(self, item: Item) -> None:
        for uid, _ in self._owners.pop(item, ()):
            if uid in self._leaving:  # the owner waits for one dependent less
                self.add(self._leaving[uid])
            if (kept := self._dependents.get(uid)) is not None:
                kept.discard(item)
                if not kept:
                    del self._dependents[uid]

    def _left_behind(self, event: Event) -> None:
        """Enqueue the dependents of a deleted object, and owners that wait for its deletion."""
        metadata = orjson.loads(event.body)["metadata"]
        self._leaving.pop(metadata["uid"], None)
        if dependents := self._dependents.get(metadata["uid"]):
            self._absent[metadata["uid"]] = None
            while len(self._absent) > MOST_ABSENT:
                del self._absent[next(iter(self._absent))]
            for item in dependents:
                self.add(item)
        self._tell_waiting(metadata.get("ownerReferences") or [], event.namespace)

    def _tell_waiting(self, references: Sequence[Manifest], namespace: str) -> None:
        """Enqueue owners that wait for their dependents in a foreground deletion."""
        for reference in references:
            found = self._owner(reference, namespace)
            if found is not None and _waits(found[1].body):
                self.add(Item(found[0].bucket, found[1].namespace, found[1].name))

    async def keep(self, key: Item) -> None:
        entry = self.registry.store.latest(*key)
        served = self._served(key.bucket)
        if entry is None or served is None:
            return
        manifest = served.read(entry)
        metadata = manifest["metadata"]
        finalizers = metadata.get("finalizers") or []
        if metadata.get("deletionTimestamp"):
            if ORPHAN in finalizers:
                await self._set_free(served, entry, manifest)
            elif FOREGROUND in finalizers:
                await self._dependents_first(served, entry, manifest)
            return
        await self._judge(served, entry, manifest)

    async def _judge(self, served: Served, entry: Entry, manifest: Manifest) -> None:
        """Delete the object if no owner is left; otherwise remove references to owners that are gone."""
        references = manifest["metadata"].get("ownerReferences") or []
        if not references:
            return
        living: list[Manifest] = []
        waiting: list[Manifest] = []
        for reference in references:
            if self._is_beyond_knowing(reference, entry.namespace):
                living.append(reference)
            elif found := self._owner(reference, entry.namespace):
                (waiting if _waits(found[1].body) else living).append(reference)
        uid = manifest["metadata"]["uid"]
        if living:
            if len(living) < len(references):
                metadata = {**manifest["metadata"], "ownerReferences": living}
                await self.rewrite(served, entry.namespace, entry.name, {**manifest, "metadata": metadata})
        elif waiting and uid in self._dependents:
            if any(_waits(dependent.body) for _, dependent in self._living_dependents(uid)):
                await self._stop_blocking(served, entry, manifest)
            await self.delete(served, entry, uid, Propagation.FOREGROUND)
        else:
            asked = {ORPHAN: Propagation.ORPHAN, FOREGROUND: Propagation.FOREGROUND}
            finalizers = manifest["metadata"].get("finalizers") or []
            chosen = next((asked[each] for each in finalizers if each in asked), Propagation.BACKGROUND)
            await self.delete(served, entry, uid, chosen)

    async def _stop_blocking(self, served: Served, entry: Entry, manifest: Manifest) -> None:
        """k8s: owners in a cycle would wait for each other, so one of them stops blocking."""
        references = [{**each, "blockOwnerDeletion": False} for each in manifest["metadata"]["ownerReferences"]]
        metadata = {**manifest["metadata"], "ownerReferences": references}
        await self.rewrite(served, entry.namespace, entry.name, {**manifest, "metadata": metadata})

    def _is_beyond_knowing(self, reference: Manifest, namespace: str) -> bool:
        """k8s: an owner of an unserved kind, or a namespaced owner of a cluster-scoped object, deletes nothing."""
        if reference["uid"] in self._absent:
            return False
        group, _ = split_api_version(reference["apiVersion"])
        served = self.registry.catalog.of_kind(GroupKind(group, reference["kind"]))
        return served is None or (served.resource.namespaced and not namespace)

    async def _dependents_first(self, served: Served, entry: Entry, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        blocked = False
        for item, dependent in list(self._living_dependents(uid)):
            metadata = orjson.loads(dependent.body)["metadata"]
            reference = next(each for each in metadata["ownerReferences"] if each["uid"] == uid)
            blocked = blocked or bool(reference.get("blockOwnerDeletion"))
            if not metadata.get("deletionTimestamp"):
                self.add(item)
        if not blocked:
            await self._release(served, entry, manifest, FOREGROUND)

    async def _set_free(self, served: Served, entry: Entry, manifest: Manifest) -> None:
        uid = manifest["metadata"]["uid"]
        for item, dependent in list(self._living_dependents(uid)):
            kind = self._served(item.bucket)
            assert kind is not None
            child = kind.read(dependent)
            kept = [each for each in child["metadata"]["ownerReferences"] if each["uid"] != uid]
            metadata = {**child["metadata"], "ownerReferences": kept}
            await self.rewrite(kind, item.namespace, item.name, {**child, "metadata": metadata})
        await self._release(served, entry, manifest, ORPHAN)

    async def _release(self, served: Served, entry: Entry, manifest: Manifest, finalizer: str) -> None:
        kept = [each for each in manifest["metadata"]["finalizers"] if each != finalizer]
        metadata = {**manifest["metadata"], "finalizers": kept}
        await self.rewrite(served, entry.namespace, entry.name, {**manifest, "metadata": metadata})

    def _living_dependents(self, uid: str) -> Iterator[tuple[Item, Entry]]:
        for item in sorted(self._dependents.get(uid, ())):
            if (entry := self.registry.store.latest(*item)) is not None:
                yield item, entry

    def _owner(self, reference: Manifest, namespace: str) -> tuple[Served, Entry] | None:
        group, _ = split_api_version(reference["apiVersion"])
        served = self.registry.catalog.of_kind(GroupKind(group, reference["kind"]))
        if served is None:
            return None
        place = namespace if served.resource.namespaced else ""
        entry = self.registry.store.latest(served.bucket, place, reference["name"])
        if entry is None or orjson.loads(entry.body)["metadata"]["uid"] != reference["uid"]:
            return None
        return served, entry

    def _served(self, bucket: str) -> Served | None:
        return next((each for each in self.registry.catalog.stored() if each.bucket == bucket), None)


def _waits(body: bytes) -> bool:
    if b'"deletionTimestamp"' not in body or FOREGROUND.encode() not in body:
        return False
    metadata = orjson.loads(body)["metadata"]
    return "deletionTimestamp" in metadata and FOREGROUND in (metadata.get("finalizers") or [])
