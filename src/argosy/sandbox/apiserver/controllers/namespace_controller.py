"""Namespace controller: creates the default ServiceAccount and CA ConfigMap; deletes content of terminating namespaces.

k8s: the real controller waits five seconds before it starts; this one does not need to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson

from argosy.errors import Conflict, Forbidden
from argosy.kube.client import Propagation
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.sandbox.apiserver.controllers.controller import CONTROLLER_CALL, KeyedController
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.store import StoreEvent

ROOT_CA_CONFIG_MAP = "kube-root-ca.crt"
ROOT_CA_DESCRIPTION = "The certificate of this cluster's API server, for clients inside the cluster."


class NamespaceController(KeyedController[str]):
    def __init__(self, registry: Registry, certificate: Path | None) -> None:
        super().__init__(registry)
        self._certificate = certificate
        self._terminating: set[str] = set()
        for entry in registry.store.list("namespaces"):
            self.enqueue(entry.name)

    def on_events(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            if event.bucket == "namespaces":
                self._terminating.discard(event.name)
                if event.type != "DELETED":
                    self.enqueue(event.name)
            elif event.namespace in self._terminating or (event.type == "DELETED" and _is_default_object(event)):
                self.enqueue(event.namespace)

    async def reconcile(self, key: str) -> None:
        namespaces = self._get_core_kind("namespaces")
        entry = self.registry.store.get_latest("namespaces", "", key)
        if entry is None:
            return
        manifest = namespaces.read_entry(entry)
        if "deletionTimestamp" in manifest["metadata"]:
            self._terminating.add(key)
            await self._delete_content(namespaces, manifest)
        else:
            await self._create_default_objects(key)

    def _get_core_kind(self, plural: str) -> ApiKind:
        served = self.registry.catalog.find_resource("", "v1", plural)
        assert served is not None
        return served

    async def _create_default_objects(self, namespace: str) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await self._ensure_exists("serviceaccounts", namespace, account)
        if self._certificate is not None:
            annotations = {"kubernetes.io/description": ROOT_CA_DESCRIPTION}
            metadata = {"name": ROOT_CA_CONFIG_MAP, "annotations": annotations}
            data = {"ca.crt": self._certificate.read_text()}
            config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._ensure_exists("configmaps", namespace, config_map)

    async def _ensure_exists(self, plural: str, namespace: str, manifest: Manifest) -> None:
        served = self._get_core_kind(plural)
        if self.registry.store.get_latest(served.bucket, namespace, manifest["metadata"]["name"]) is None:
            try:
                await self.registry.create(served, namespace, manifest, CONTROLLER_CALL)
            except (Conflict, Forbidden):
                pass  # already created, or the namespace is terminating

    async def _delete_content(self, namespaces: ApiKind, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        remaining: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for served in list(self.registry.catalog.list_stored_kinds()):
            if not served.resource.namespaced:
                continue
            for entry in list(self.registry.store.list(served.bucket, name)):
                metadata = orjson.loads(entry.body)["metadata"]
                if "deletionTimestamp" not in metadata:
                    await self.delete_object(served, entry, metadata["uid"], Propagation.BACKGROUND)
            for entry in self.registry.store.list(served.bucket, name):
                remaining[f"{served.resource.plural}.{served.resource.group}"] += 1
                for finalizer in orjson.loads(entry.body)["metadata"].get("finalizers") or []:
                    finalizers[finalizer] += 1
        if remaining:
            await self._update_status(namespaces, manifest, remaining, finalizers)
        else:
            await self._remove_kubernetes_finalizer(namespaces, name)

    async def _remove_kubernetes_finalizer(self, namespaces: ApiKind, name: str) -> None:
        def drop_finalizer(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            finalizers = [
                finalizer for finalizer in (old.get("spec") or {}).get("finalizers") or [] if finalizer != "kubernetes"
            ]
            return {**old, "spec": {"finalizers": finalizers} if finalizers else {}}, ()

        await self.registry.read_modify_write(namespaces, "", name, drop_finalizer, CONTROLLER_CALL, "finalize")

    async def _update_status(
        self, namespaces: ApiKind, manifest: Manifest, remaining: Counter[str], finalizers: Counter[str]
    ) -> None:
        conditions = self._build_conditions(manifest, remaining, finalizers)
        status = {**(manifest.get("status") or {}), "conditions": conditions}
        if status != manifest.get("status"):
            name = manifest["metadata"]["name"]
            await self.update_object(namespaces, "", name, {**manifest, "status": status}, "status")

    def _build_conditions(
        self, manifest: Manifest, remaining: Counter[str], finalizers: Counter[str]
    ) -> list[Manifest]:
        remaining_text = ", ".join(
            f"{kind} has {count} resource instances" for kind, count in sorted(remaining.items())
        )
        finalizers_text = ", ".join(
            f"{name} in {count} resource instances" for name, count in sorted(finalizers.items())
        )
        prefix = "NamespaceDeletion"
        rows = [
            (f"{prefix}DiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
            (
                f"{prefix}GroupVersionParsingFailure",
                False,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                f"{prefix}ContentFailure",
                False,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            (
                "NamespaceContentRemaining",
                True,
                "SomeResourcesRemain",
                f"Some resources are remaining: {remaining_text}",
            ),
        ]
        if finalizers:
            message = f"Some content in the namespace has finalizers remaining: {finalizers_text}"
            rows.append(("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", message))
        previous = {
            condition["type"]: condition for condition in (manifest.get("status") or {}).get("conditions") or []
        }
        now = format_timestamp(self.registry.clock())
        return [_build_condition(previous.get(row[0]), *row, now) for row in rows]


def _is_default_object(event: StoreEvent) -> bool:
    """k8s: the objects that every namespace has are created again when they are deleted."""
    return (event.bucket, event.name) in (("serviceaccounts", "default"), ("configmaps", ROOT_CA_CONFIG_MAP))


def _build_condition(
    previous: Manifest | None, type_: str, is_true: bool, reason: str, message: str, now: str
) -> Manifest:
    status = "True" if is_true else "False"
    transition_time = previous["lastTransitionTime"] if previous and previous["status"] == status else now
    return {
        "type": type_,
        "status": status,
        "lastTransitionTime": transition_time,
        "reason": reason,
        "message": message,
    }
