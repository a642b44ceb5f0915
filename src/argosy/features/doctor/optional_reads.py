"""Reads objects without failing: forbidden kinds are noted, and the examination continues.

In: a cluster. Out: manifests, and the kinds that were not readable. Never: writes; treats forbidden as not found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Catalog, Cluster
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

AT_ONCE: Final = 12
MANY: Final = 20  # more are listed with one cluster-wide request


class Asking:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.unread: set[GroupKind] = set()
        self._notes: dict[str, set[str]] = {}  # forbidden kinds by namespace
        self._others: dict[str, None] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)

    @property
    def notes(self) -> list[str]:
        """One note for all namespaces with the same forbidden kinds."""
        alike: dict[tuple[str, ...], list[str]] = {}
        for place, kinds in sorted(self._notes.items()):
            alike.setdefault(tuple(sorted(kinds)), []).append(place)
        told = []
        for kinds_there, places in alike.items():
            where = f" in {', '.join(filter(None, places))}" if any(places) else ""
            told.append(f"you may not read{where}: {', '.join(kinds_there)}; findings that need them are missing")
        return [*told, *self._others]

    def note(self, text: str) -> None:
        self._others[text] = None

    async def kinds(self) -> Catalog:
        try:
            return await self.cluster.kinds()
        except ClusterError as error:
            self.note(f"the kinds of the cluster cannot be read: {error.message}")
            return {}

    async def get(self, key: ResourceKey) -> Manifest | None:
        """Return None if the object does not exist or is not readable; `unread` has the kinds that are not readable."""
        async with self._gate:
            try:
                return await self.cluster.get(key)
            except ArgosyError as error:
                self._refused(key.group_kind, key.namespace, error)
                return None

    async def all_of(self, kind: GroupKind, namespace: str = "", labels: str = "") -> list[Manifest]:
        async with self._gate:
            try:
                found = (await self.cluster.list(kind, namespace=namespace, labels=labels)).items
            except ArgosyError as error:
                self._refused(kind, namespace, error)
                return []
        return [_whole(each, kind) for each in found]

    async def list_all(self, kinds: Iterable[GroupKind], namespaces: Sequence[str]) -> dict[GroupKind, list[Manifest]]:
        """List kinds in these namespaces; many namespaces are listed with one cluster-wide request."""
        served = await self.kinds()
        places = namespaces if len(namespaces) <= MANY else ("",)
        wanted = [(kind, place) for kind in kinds if kind in served for place in places]
        found = await asyncio.gather(*(self.all_of(kind, place) for kind, place in wanted))
        gathered: dict[GroupKind, list[Manifest]] = {}
        for (kind, _), items in zip(wanted, found, strict=True):
            mine = (each for each in items if each["metadata"].get("namespace") in namespaces)
            gathered.setdefault(kind, []).extend(mine)
        return gathered

    def _refused(self, kind: GroupKind, namespace: str, error: ArgosyError) -> None:
        if isinstance(error, ClusterError) and error.code in (404, 405):
            return  # the kind is not served
        self.unread.add(kind)
        if isinstance(error, ClusterError) and error.code in (401, 403):
            self._notes.setdefault(namespace, set()).add(_plural(kind))
        else:
            self.note(f"{kind} could not be read: {error}")


def _plural(kind: GroupKind) -> str:
    return f"{kind.kind}es" if kind.kind.endswith("s") else f"{kind.kind}s"


def _whole(manifest: Manifest, kind: GroupKind) -> Manifest:
    """k8s: items of a list may lack kind and apiVersion."""
    if manifest.get("kind") and manifest.get("apiVersion"):
        return manifest
    return {"apiVersion": f"{kind.group}/v1" if kind.group else "v1", "kind": kind.kind, **manifest}
