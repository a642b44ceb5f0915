"""Reads objects without failing: forbidden kinds are noted, and the examination continues.

In: a cluster. Out: manifests, and the kinds that were not readable. Never: writes; treats forbidden as not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Catalog, Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey

MAX_CONCURRENT_REQUESTS: Final = 12
MAX_NAMESPACES_LISTED_SEPARATELY: Final = 20  # more are listed with one cluster-wide request


class OptionalReads:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.unread: set[GroupKind] = set()
        self._forbidden_kinds: dict[str, set[str]] = {}  # forbidden kinds by namespace
        self._other_notes: dict[str, None] = {}
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)

    @property
    def notes(self) -> list[str]:
        """One note for all namespaces with the same forbidden kinds."""
        namespaces_by_kinds: dict[tuple[str, ...], list[str]] = {}
        for namespace, kinds in sorted(self._forbidden_kinds.items()):
            namespaces_by_kinds.setdefault(tuple(sorted(kinds)), []).append(namespace)
        messages = []
        for kinds_there, places in namespaces_by_kinds.items():
            namespaces_text = f" in {', '.join(filter(None, places))}" if any(places) else ""
            messages.append(
                f"you may not read{namespaces_text}: {', '.join(kinds_there)}; findings that need them are missing"
            )
        return [*messages, *self._other_notes]

    def add_note(self, text: str) -> None:
        self._other_notes[text] = None

    async def kinds(self) -> Catalog:
        try:
            return await self.cluster.kinds()
        except ClusterError as error:
            self.add_note(f"the kinds of the cluster cannot be read: {error.message}")
            return {}

    async def get(self, key: ResourceKey) -> Manifest | None:
        """Return None if the object does not exist or is not readable; `unread` has the kinds that are not readable."""
        async with self._semaphore:
            try:
                return await self.cluster.get(key)
            except ArgosyError as error:
                self._record_error(key.group_kind, key.namespace, error)
                return None

    async def list_kind(self, kind: GroupKind, namespace: str = "", labels: str = "") -> list[Manifest]:
        async with self._semaphore:
            try:
                items = (await self.cluster.list(kind, namespace=namespace, labels=labels)).items
            except ArgosyError as error:
                self._record_error(kind, namespace, error)
                return []
        return [_add_type_meta(item, kind) for item in items]

    async def list_kinds(
        self, kinds: Iterable[GroupKind], namespaces: Sequence[str]
    ) -> dict[GroupKind, list[Manifest]]:
        """List kinds in these namespaces; many namespaces are listed with one cluster-wide request."""
        served = await self.kinds()
        listed_namespaces = namespaces if len(namespaces) <= MAX_NAMESPACES_LISTED_SEPARATELY else ("",)
        requests = [(kind, namespace) for kind in kinds if kind in served for namespace in listed_namespaces]
        listings = await asyncio.gather(*(self.list_kind(kind, namespace) for kind, namespace in requests))
        gathered: dict[GroupKind, list[Manifest]] = {}
        for (kind, _), items in zip(requests, listings, strict=True):
            matching = (item for item in items if item["metadata"].get("namespace") in namespaces)
            gathered.setdefault(kind, []).extend(matching)
        return gathered

    def _record_error(self, kind: GroupKind, namespace: str, error: ArgosyError) -> None:
        if isinstance(error, ClusterError) and error.code in (404, 405):
            return  # the kind is not served
        self.unread.add(kind)
        if isinstance(error, ClusterError) and error.code in (401, 403):
            self._forbidden_kinds.setdefault(namespace, set()).add(_pluralize(kind))
        else:
            self.add_note(f"{kind} could not be read: {error}")


def _pluralize(kind: GroupKind) -> str:
    return f"{kind.kind}es" if kind.kind.endswith("s") else f"{kind.kind}s"


def _add_type_meta(manifest: Manifest, kind: GroupKind) -> Manifest:
    """k8s: items of a list may lack kind and apiVersion."""
    if manifest.get("kind") and manifest.get("apiVersion"):
        return manifest
    return {"apiVersion": f"{kind.group}/v1" if kind.group else "v1", "kind": kind.kind, **manifest}
