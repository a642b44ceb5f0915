"""EmbeddedCluster: a `Cluster` client that calls the embedded control plane in process, without HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from argosy.errors import ClusterError, Gone, ManifestError
from argosy.kube.client import (
    Admitter,
    Asked,
    Catalog,
    KindInfo,
    Listing,
    PatchKind,
    Performer,
    Propagation,
    User,
    WatchEvent,
)
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.authentication import add_implied_groups
from argosy.sandbox.apiserver.control_plane import Folder, Plane
from argosy.sandbox.apiserver.deletion import DeleteOptions
from argosy.sandbox.apiserver.listing import Matcher, Query, parse_version
from argosy.sandbox.apiserver.registry_call import ADMIN, Call
from argosy.sandbox.apiserver.scale import read_scale
from argosy.sandbox.apiserver.served_kind import Served
from argosy.sandbox.store import Entry, Event

MANAGER = "argosy"


def _size_of(value: Any) -> int:
    """Bytes of the value as JSON; 0 if it cannot be encoded, which the registry reports."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return 0


class EmbeddedCluster:
    """Methods raise only ClusterError and TransientError."""

    def __init__(self, plane: Plane, user: User = ADMIN) -> None:
        self.plane = plane
        self._user = user
        self._registry = plane.registry

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, folder: Folder | None = None, *, rbac: bool = False) -> AsyncIterator[EmbeddedCluster]:
        """Start a cluster of its own; in memory if `files` is None."""
        async with Plane.open(folder, rbac=rbac) as plane:
            yield cls(plane)

    def acting_as(self, user: User) -> EmbeddedCluster:
        return EmbeddedCluster(self.plane, replace(user, groups=add_implied_groups(user.name, user.groups)))

    @contextlib.contextmanager
    def admit_with(self, admitters: Sequence[Admitter]) -> Iterator[None]:
        admission = self._registry.admission
        admission.admitters = (*admission.admitters, *admitters)
        try:
            yield
        finally:
            gone = {id(each) for each in admitters}
            admission.admitters = tuple(each for each in admission.admitters if id(each) not in gone)

    @contextlib.contextmanager
    def perform_with(self, performers: Sequence[Performer]) -> Iterator[None]:
        known = self.plane.actions.performers
        told = {(each.kind, each.part): self._performing(each) for each in performers}
        known.update(told)
        try:
            yield
        finally:
            for each in told:
                known.pop(each, None)

    def _performing(self, performer: Performer) -> Callable[[Asked], Awaitable[Manifest]]:
        return lambda asked: performer.perform(asked, self)

    # -- reading -------------------------------------------------------------------------------------------------

    async def kinds(self) -> Catalog:
        catalog = self._registry.catalog
        found: dict[GroupKind, KindInfo] = {}
        for served in catalog:
            resource = served.resource
            if resource.group_kind not in found:
                found[resource.group_kind] = KindInfo(
                    resource.version,
                    resource.plural,
                    resource.namespaced,
                    tuple(catalog.versions_of(resource.group_kind)),
                    resource.verbs,
                    tuple(each.name for each in resource.subresources),
                    resource.short_names,
                    resource.categories,
                )
        return found

    async def get(self, key: ResourceKey) -> Manifest | None:
        served = self._served(key.group_kind)
        try:
            with _about(key):
                return served.read(self._registry.get(served, key.namespace, key.name, self._user))
        except ClusterError as error:
            if error.code == 404:
                return None
            raise

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        served = self._served(kind)
        query = Query(labels=labels, fields=fields)
        self._registry.authorize(self._user, "list", served, namespace, query.single_name)
        page = await self.plane.lister.page(served, namespace, query)
        items = [_shown(served, entry, metadata_only) for entry in page.entries]
        return Listing(items, str(page.revision))

    async def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        served = self._served(kind)
        self._registry.authorize(self._user, "watch", served, namespace)
        matcher = Matcher(served, Query(labels=labels))
        try:
            changes = self.plane.store.watch(served.bucket, since=parse_version(since))
        except Gone as error:
            message = f"too old resource version: {since} ({self.plane.store.revision})"
            raise status_errors.expired(message) from error
        try:
            while batch := await changes.next_batch():
                for event in batch:
                    if not namespace or event.namespace == namespace:
                        for seen in _seen(served, event, matcher, metadata_only):
                            yield seen
        finally:
            changes.close()

    # -- writing -------------------------------------------------------------------------------------------------

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        call = Call(self._user, manager or MANAGER, dry_run, size=_size_of(manifest))
        actions = self.plane.actions
        if subresource_of is not None:
            parent = self._served(subresource_of.group_kind)
            part = _part_for(parent, manifest)
            with _about(subresource_of):
                return await actions.act(parent, subresource_of.namespace, subresource_of.name, part, manifest, call)
        served = self._of(manifest)
        namespace = _place(served, (manifest.get("metadata") or {}).get("namespace") or "")
        if actions.answers(served):
            return await actions.review(served, namespace, manifest, call)
        name = (manifest.get("metadata") or {}).get("name") or ""
        with _about(ResourceKey(*served.resource.group_kind, namespace, name)):
            return (await self._registry.create(served, namespace, manifest, call)).manifest

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, dry_run: bool = False) -> Manifest:
        served, key = self._of(manifest), _named(manifest)
        call = Call(self._user, manager, dry_run, force=force, size=_size_of(manifest))
        place = _place(served, key.namespace)
        with _about(key):
            return (await self._registry.apply(served, place, key.name, manifest, call)).manifest

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, manager: str = "") -> Manifest:
        served, key = self._of(manifest), _named(manifest)
        call = Call(self._user, manager or MANAGER, dry_run, size=_size_of(manifest))
        place = _place(served, key.namespace)
        with _about(key):
            return (await self._registry.update(served, place, key.name, manifest, call)).manifest

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
        served = self._served(key.group_kind, split_api_version(api_version)[1])
        call = Call(self._user, manager or MANAGER, dry_run, size=_size_of(patch))
        part = served.resource.subresource(subresource) if subresource else None
        if subresource and (part is None or "patch" not in part.verbs):
            raise status_errors.not_found(served.resource, key.name)
        if subresource == "scale":
            with _about(key):
                where = (served, key.namespace, key.name)
                scaled = await self.plane.actions.patch_scale(*where, patch, kind_of_patch, call)
            return read_scale(served, scaled.manifest)
        with _about(key):
            written = await self._registry.patch(
                served, key.namespace, key.name, patch, kind_of_patch, call, subresource=subresource
            )
        return written.manifest

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None:
        served = self._served(key.group_kind)
        options = DeleteOptions(propagation, grace, uid or "", version or "")
        with _about(key):
            await self.plane.deletion.delete(served, key.namespace, key.name, options, Call(self._user, MANAGER))

    async def logs(
        self,
        key: ResourceKey,
        *,
        container: str = "",
        follow: bool = False,
        tail: int | None = None,
        since: int | None = None,
        previous: bool = False,
    ) -> AsyncIterator[str]:
        served = self._served(key.group_kind)
        lines = self.plane.actions.logs(
            served,
            key.namespace,
            key.name,
            self._user,
            container=container,
            follow=follow,
            tail=tail,
            previous=previous,
        )
        async for line in lines:
            yield line

    # -- finding kinds -------------------------------------------------------------------------------------------

    def _served(self, kind: GroupKind, version: str = "") -> Served:
        served = self._registry.catalog.of_kind(kind, version)
        if served is None:
            raise status_errors.no_such_resource()
        return served

    def _of(self, manifest: Manifest) -> Served:
        group, version = split_api_version(str(manifest.get("apiVersion") or ""))
        return self._served(GroupKind(group, str(manifest.get("kind") or "")), version)


@contextlib.contextmanager
def _about(key: ResourceKey) -> Iterator[None]:
    """Add the object's key to ClusterErrors raised in the block."""
    try:
        yield
    except ClusterError as error:
        error.key = error.key or key
        raise


def _place(served: Served, namespace: str) -> str:
    """k8s: the namespace in a manifest of a cluster-scoped kind is ignored."""
    return namespace if served.resource.namespaced else ""


def _named(manifest: Manifest) -> ResourceKey:
    try:
        return key_of(manifest)
    except ManifestError as error:
        raise status_errors.bad_request(error.message) from error


def _part_for(parent: Served, manifest: Manifest) -> str:
    """The subresource that accepts this kind, for example pods/eviction for an Eviction."""
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    for each in parent.resource.subresources:
        if each.kind == manifest.get("kind") and each.group in ("", group):
            return each.name
    raise status_errors.no_such_resource()


def _shown(served: Served, entry: Entry, metadata_only: bool) -> Manifest:
    """The manifest, or only its kind and metadata, so that both have the same key."""
    manifest = served.read(entry)
    if not metadata_only:
        return manifest
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": manifest["metadata"]}


def _seen(served: Served, event: Event, matcher: Matcher, metadata_only: bool) -> list[WatchEvent]:
    seen = matcher.transition(event)
    return [WatchEvent(seen[0].value, _shown(served, seen[1], metadata_only))] if seen else []
