"""CRD controller: establishes definitions whose names are free; removes them after their objects are deleted."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from argosy.kube.client import Propagation
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver.controllers.controller import Keeper
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.resource_catalog import DEFINITIONS
from argosy.sandbox.apiserver.served_kind import Served, bucket_of
from argosy.sandbox.store import Event

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
Row = tuple[str, str, str, str]
ACCEPTED: tuple[Row, ...] = (
    ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
)


def refused(what: str, name: str, *, served: bool) -> tuple[Row, ...]:
    """k8s: a definition with a taken name is not served until the name is free; one already served stays served."""
    names: Row = ("NamesAccepted", "False", f"{what}Conflict", f'"{name}" is already in use')
    return (names,) if served else (names, ("Established", "False", "NotAccepted", "not all names are accepted"))


class Definitions(Keeper[str]):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._dying: dict[str, str] = {}  # bucket of the custom kind → name of its definition
        for entry in registry.store.list(DEFINITIONS):
            self.add(entry.name)

    def notice(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.bucket == DEFINITIONS:
                self.add(event.name)
                if event.type == "DELETED":  # other definitions may now get its names
                    for entry in self.registry.store.list(DEFINITIONS):
                        self.add(entry.name)
            elif event.bucket in self._dying:
                self.add(self._dying[event.bucket])

    async def keep(self, key: str) -> None:
        served = self.registry.catalog.at("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert served is not None
        entry = self.registry.store.latest(DEFINITIONS, "", key)
        if entry is None:
            return
        manifest = served.read(entry)
        if "deletionTimestamp" in manifest["metadata"]:
            await self._take_down(served, manifest)
        else:
            await self._establish(served, manifest)

    async def _establish(self, served: Served, manifest: Manifest) -> None:
        """Set the cleanup finalizer, serve the kind, and report conditions and accepted names."""
        name = manifest["metadata"]["name"]
        finalizers = manifest["metadata"].get("finalizers") or []
        if CLEANUP not in finalizers:
            metadata = {**manifest["metadata"], "finalizers": [*finalizers, CLEANUP]}
            await self.rewrite(served, "", name, {**manifest, "metadata": metadata})
            return  # the write enqueues this key again
        status = manifest.get("status") or {}
        catalog = self.registry.catalog
        if not catalog.serves(name):
            catalog.define(manifest)
        taken = catalog.conflict(manifest)
        rows = refused(*taken, served=catalog.serves(name)) if taken else ACCEPTED
        conditions = self._conditions(status, rows)
        stored = list(status.get("storedVersions") or [])
        current = next(each["name"] for each in manifest["spec"]["versions"] if each["storage"])
        if current not in stored:
            stored.append(current)
        accepted = status.get("acceptedNames") if taken else manifest["spec"]["names"]
        wanted = {"conditions": conditions, "acceptedNames": accepted, "storedVersions": stored}
        if wanted != status:
            await self.rewrite(served, "", name, {**manifest, "status": wanted}, "status")

    def _conditions(self, status: Manifest, rows: Sequence[Row]) -> list[Manifest]:
        known = {each["type"]: each for each in status.get("conditions") or []}
        now = meta.stamp(self.registry.clock())
        for type_, holds, reason, message in rows:
            before = known.get(type_)
            since = before["lastTransitionTime"] if before and before["status"] == holds else now
            row = {"type": type_, "status": holds, "lastTransitionTime": since, "reason": reason, "message": message}
            known[type_] = row
        return list(known.values())

    async def _take_down(self, served: Served, manifest: Manifest) -> None:
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        bucket = bucket_of(spec["group"], spec["names"]["plural"])
        self._dying[bucket] = name
        stored = self.registry.catalog.stored()
        kind = next((each for each in stored if each.bucket == bucket and each.resource.custom), None)
        for entry in list(self.registry.store.list(bucket)) if kind is not None else ():
            metadata = orjson.loads(entry.body)["metadata"]
            if "deletionTimestamp" not in metadata:
                assert kind is not None
                await self.delete(kind, entry, metadata["uid"], Propagation.BACKGROUND)
        if kind is not None and self.registry.store.list(bucket):
            status = manifest.get("status") or {}
            row = ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            wanted = {**status, "conditions": self._conditions(status, [row])}
            if wanted != status:
                await self.rewrite(served, "", name, {**manifest, "status": wanted}, "status")
            return
        self._dying.pop(bucket, None)
        kept = [each for each in manifest["metadata"].get("finalizers") or [] if each != CLEANUP]
        metadata = {**manifest["metadata"], "finalizers": kept}
        await self.rewrite(served, "", name, {**manifest, "metadata": metadata})
