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
from argosy.sandbox.apiserver import metadata as meta
from argosy.sandbox.apiserver.controllers.controller import CONTROLLER, Keeper
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Event

ROOT_CERTIFICATE = "kube-root-ca.crt"
ABOUT_CERTIFICATE = "The certificate of this cluster's API server, for clients inside the cluster."


class Namespaces(Keeper[str]):
    def __init__(self, registry: Registry, certificate: Path | None) -> None:
        super().__init__(registry)
        self._certificate = certificate
        self._dying: set[str] = set()
        for entry in registry.store.list("namespaces"):
            self.add(entry.name)

    def notice(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.bucket == "namespaces":
                self._dying.discard(event.name)
                if event.type != "DELETED":
                    self.add(event.name)
            elif event.namespace in self._dying or (event.type == "DELETED" and _is_furniture(event)):
                self.add(event.namespace)

    async def keep(self, key: str) -> None:
        namespaces = self._kind("namespaces")
        entry = self.registry.store.latest("namespaces", "", key)
        if entry is None:
            return
        manifest = namespaces.read(entry)
        if "deletionTimestamp" in manifest["metadata"]:
            self._dying.add(key)
            await self._empty(namespaces, manifest)
        else:
            await self._furnish(key)

    def _kind(self, plural: str) -> Served:
        served = self.registry.catalog.at("", "v1", plural)
        assert served is not None
        return served

    async def _furnish(self, namespace: str) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await self._ensure("serviceaccounts", namespace, account)
        if self._certificate is not None:
            about = {"kubernetes.io/description": ABOUT_CERTIFICATE}
            metadata = {"name": ROOT_CERTIFICATE, "annotations": about}
            data = {"ca.crt": self._certificate.read_text()}
            wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            await self._ensure("configmaps", namespace, wanted)

    async def _ensure(self, plural: str, namespace: str, manifest: Manifest) -> None:
        served = self._kind(plural)
        if self.registry.store.latest(served.bucket, namespace, manifest["metadata"]["name"]) is None:
            try:
                await self.registry.create(served, namespace, manifest, CONTROLLER)
            except (Conflict, Forbidden):
                pass  # already created, or the namespace is terminating

    async def _empty(self, namespaces: Served, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        remaining: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for served in list(self.registry.catalog.stored()):
            if not served.resource.namespaced:
                continue
            for entry in list(self.registry.store.list(served.bucket, name)):
                metadata = orjson.loads(entry.body)["metadata"]
                if "deletionTimestamp" not in metadata:
                    await self.delete(served, entry, metadata["uid"], Propagation.BACKGROUND)
            for entry in self.registry.store.list(served.bucket, name):
                remaining[f"{served.resource.plural}.{served.resource.group}"] += 1
                for each in orjson.loads(entry.body)["metadata"].get("finalizers") or []:
                    finalizers[each] += 1
        if remaining:
            await self._report(namespaces, manifest, remaining, finalizers)
        else:
            await self._finish(namespaces, name)

    async def _finish(self, namespaces: Served, name: str) -> None:
        def finalized(old: Manifest) -> tuple[Manifest, Sequence[str]]:
            kept = [each for each in (old.get("spec") or {}).get("finalizers") or [] if each != "kubernetes"]
            return {**old, "spec": {"finalizers": kept} if kept else {}}, ()

        await self.registry.change(namespaces, "", name, finalized, CONTROLLER, "finalize")

    async def _report(
        self, namespaces: Served, manifest: Manifest, remaining: Counter[str], finalizers: Counter[str]
    ) -> None:
        conditions = self._conditions(manifest, remaining, finalizers)
        status = {**(manifest.get("status") or {}), "conditions": conditions}
        if status != manifest.get("status"):
            name = manifest["metadata"]["name"]
            await self.rewrite(namespaces, "", name, {**manifest, "status": status}, "status")

    def _conditions(self, manifest: Manifest, remaining: Counter[str], finalizers: Counter[str]) -> list[Manifest]:
        left = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(remaining.items()))
        held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
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
            ("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {left}"),
        ]
        if finalizers:
            message = f"Some content in the namespace has finalizers remaining: {held}"
            rows.append(("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", message))
        before = {each["type"]: each for each in (manifest.get("status") or {}).get("conditions") or []}
        now = meta.stamp(self.registry.clock())
        return [_condition(before.get(row[0]), *row, now) for row in rows]


def _is_furniture(event: Event) -> bool:
    """k8s: the objects that every namespace has are created again when they are deleted."""
    return (event.bucket, event.name) in (("serviceaccounts", "default"), ("configmaps", ROOT_CERTIFICATE))


def _condition(before: Manifest | None, type_: str, holds: bool, reason: str, message: str, now: str) -> Manifest:
    status = "True" if holds else "False"
    since = before["lastTransitionTime"] if before and before["status"] == status else now
    return {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
