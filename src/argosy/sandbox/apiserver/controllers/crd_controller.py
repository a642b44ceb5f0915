"""CRD controller: establishes definitions whose names are free; removes them after their objects are deleted."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from argosy.kube.client import Propagation
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.sandbox.apiserver.controllers.controller import KeyedController
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind, get_bucket
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.resource_catalog import CRD_BUCKET
from argosy.sandbox.store import StoreEvent

CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
ConditionRow = tuple[str, str, str, str]
ACCEPTED_CONDITIONS: tuple[ConditionRow, ...] = (
    ("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
    ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
)


def build_conflict_conditions(name_type: str, name: str, *, is_served: bool) -> tuple[ConditionRow, ...]:
    """k8s: a definition with a taken name is not served until the name is free; one already served stays served."""
    names_accepted: ConditionRow = ("NamesAccepted", "False", f"{name_type}Conflict", f'"{name}" is already in use')
    return (
        (names_accepted,)
        if is_served
        else (names_accepted, ("Established", "False", "NotAccepted", "not all names are accepted"))
    )


class CrdController(KeyedController[str]):
    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._terminating: dict[str, str] = {}  # bucket of the custom kind → name of its definition
        for entry in registry.store.list(CRD_BUCKET):
            self.enqueue(entry.name)

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            if event.bucket == CRD_BUCKET:
                self.enqueue(event.name)
                if event.type == "DELETED":  # other definitions may now get its names
                    for entry in self.registry.store.list(CRD_BUCKET):
                        self.enqueue(entry.name)
            elif event.bucket in self._terminating:
                self.enqueue(self._terminating[event.bucket])

    async def reconcile(self, key: str) -> None:
        served = self.registry.catalog.find_resource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert served is not None
        entry = self.registry.store.get_latest(CRD_BUCKET, "", key)
        if entry is None:
            return
        manifest = served.read_entry(entry)
        if "deletionTimestamp" in manifest["metadata"]:
            await self._delete_instances(served, manifest)
        else:
            await self._establish(served, manifest)

    async def _establish(self, served: ApiKind, manifest: Manifest) -> None:
        """Set the cleanup finalizer, serve the kind, and report conditions and accepted names."""
        name = manifest["metadata"]["name"]
        finalizers = manifest["metadata"].get("finalizers") or []
        if CLEANUP_FINALIZER not in finalizers:
            metadata = {**manifest["metadata"], "finalizers": [*finalizers, CLEANUP_FINALIZER]}
            await self.update_object(served, "", name, {**manifest, "metadata": metadata})
            return  # the write enqueues this key again
        status = manifest.get("status") or {}
        catalog = self.registry.catalog
        if not catalog.is_definition_served(name):
            catalog.add_definition(manifest)
        conflict = catalog.find_name_conflict(manifest)
        rows = (
            build_conflict_conditions(*conflict, is_served=catalog.is_definition_served(name))
            if conflict
            else ACCEPTED_CONDITIONS
        )
        conditions = self._build_conditions(status, rows)
        stored_versions = list(status.get("storedVersions") or [])
        storage_version = next(version["name"] for version in manifest["spec"]["versions"] if version["storage"])
        if storage_version not in stored_versions:
            stored_versions.append(storage_version)
        accepted_names = status.get("acceptedNames") if conflict else manifest["spec"]["names"]
        new_status = {"conditions": conditions, "acceptedNames": accepted_names, "storedVersions": stored_versions}
        if new_status != status:
            await self.update_object(served, "", name, {**manifest, "status": new_status}, "status")

    def _build_conditions(self, status: Manifest, rows: Sequence[ConditionRow]) -> list[Manifest]:
        conditions_by_type = {condition["type"]: condition for condition in status.get("conditions") or []}
        now = format_timestamp(self.registry.clock())
        for type_, condition_status, reason, message in rows:
            previous = conditions_by_type.get(type_)
            transition_time = (
                previous["lastTransitionTime"] if previous and previous["status"] == condition_status else now
            )
            row = {
                "type": type_,
                "status": condition_status,
                "lastTransitionTime": transition_time,
                "reason": reason,
                "message": message,
            }
            conditions_by_type[type_] = row
        return list(conditions_by_type.values())

    async def _delete_instances(self, served: ApiKind, manifest: Manifest) -> None:
        name, spec = manifest["metadata"]["name"], manifest["spec"]
        bucket = get_bucket(spec["group"], spec["names"]["plural"])
        self._terminating[bucket] = name
        stored_kinds = self.registry.catalog.list_stored_kinds()
        kind = next(
            (candidate for candidate in stored_kinds if candidate.bucket == bucket and candidate.resource.custom), None
        )
        for entry in list(self.registry.store.list(bucket)) if kind is not None else ():
            metadata = orjson.loads(entry.body)["metadata"]
            if "deletionTimestamp" not in metadata:
                assert kind is not None
                await self.delete_object(kind, entry, metadata["uid"], Propagation.BACKGROUND)
        if kind is not None and self.registry.store.list(bucket):
            status = manifest.get("status") or {}
            row = ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            new_status = {**status, "conditions": self._build_conditions(status, [row])}
            if new_status != status:
                await self.update_object(served, "", name, {**manifest, "status": new_status}, "status")
            return
        self._terminating.pop(bucket, None)
        finalizers = [
            candidate for candidate in manifest["metadata"].get("finalizers") or [] if candidate != CLEANUP_FINALIZER
        ]
        metadata = {**manifest["metadata"], "finalizers": finalizers}
        await self.update_object(served, "", name, {**manifest, "metadata": metadata})
