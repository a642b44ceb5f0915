"""EmbeddedCluster: a `Cluster` client that calls the embedded control plane in process, without HTTP."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import orjson

from argosy.errors import ClusterError, Gone, ManifestError
from argosy.kube.client import (
    AdmissionHandler,
    Catalog,
    KindInfo,
    Listing,
    PatchKind,
    Propagation,
    SubresourceExtension,
    SubresourceRequest,
    User,
    WatchEvent,
)
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.authentication import add_implied_groups
from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from argosy.sandbox.apiserver.deletion import DeleteOptions
from argosy.sandbox.apiserver.kind_codec_and_validation import ApiKind
from argosy.sandbox.apiserver.listing import ListOptions, SelectorMatcher, parse_resource_version
from argosy.sandbox.apiserver.scale import build_scale
from argosy.sandbox.apiserver.write_call_and_result_types import ADMIN, RegistryCall
from argosy.sandbox.store import StoreEntry, StoreEvent

DEFAULT_FIELD_MANAGER = "argosy"


def _encoded_size(value: Any) -> int:
    """Bytes of the value as JSON; 0 if it cannot be encoded, which the registry reports."""
    try:
        return len(orjson.dumps(value))
    except TypeError:
        return 0


class EmbeddedCluster:
    """Methods raise only ClusterError and TransientError."""

    def __init__(self, plane: ControlPlane, user: User = ADMIN) -> None:
        self.plane = plane
        self._user = user
        self._registry = plane.registry

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, files: ControlPlaneFiles | None = None, *, rbac: bool = False
    ) -> AsyncIterator[EmbeddedCluster]:
        """Start a cluster of its own; in memory if `files` is None."""
        async with ControlPlane.open(files, rbac=rbac) as plane:
            yield cls(plane)

    def acting_as(self, user: User) -> EmbeddedCluster:
        return EmbeddedCluster(self.plane, replace(user, groups=add_implied_groups(user.name, user.groups)))

    @contextlib.contextmanager
    def register_admission(self, handlers: Sequence[AdmissionHandler]) -> Iterator[None]:
        admission = self._registry.admission
        admission.admitters = (*admission.admitters, *handlers)
        try:
            yield
        finally:
            removed_ids = {id(admitter) for admitter in handlers}
            admission.admitters = tuple(admitter for admitter in admission.admitters if id(admitter) not in removed_ids)

    @contextlib.contextmanager
    def register_subresources(self, extensions: Sequence[SubresourceExtension]) -> Iterator[None]:
        registered = self.plane.subresources.performers
        added = {(performer.kind, performer.subresource): self._bind_performer(performer) for performer in extensions}
        registered.update(added)
        try:
            yield
        finally:
            for performer in added:
                registered.pop(performer, None)

    def _bind_performer(self, performer: SubresourceExtension) -> Callable[[SubresourceRequest], Awaitable[Manifest]]:
        return lambda request: performer.handle(request, self)

    # -- reading -------------------------------------------------------------------------------------------------

    async def kinds(self) -> Catalog:
        catalog = self._registry.catalog
        kinds: dict[GroupKind, KindInfo] = {}
        for served in catalog:
            resource = served.resource
            if resource.group_kind not in kinds:
                kinds[resource.group_kind] = KindInfo(
                    resource.version,
                    resource.plural,
                    resource.namespaced,
                    tuple(catalog.list_versions(resource.group_kind)),
                    resource.verbs,
                    tuple(subresource.name for subresource in resource.subresources),
                    resource.short_names,
                    resource.categories,
                )
        return kinds

    async def get(self, key: ResourceKey) -> Manifest | None:
        served = self._get_served_kind(key.group_kind)
        try:
            with _add_key_to_errors(key):
                return served.read_entry(self._registry.get(served, key.namespace, key.name, self._user))
        except ClusterError as error:
            if error.code == 404:
                return None
            raise

    async def list(
        self, kind: GroupKind, *, namespace: str = "", labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> Listing:
        served = self._get_served_kind(kind)
        query = ListOptions(label_selector=labels, field_selector=fields)
        self._registry.authorize(self._user, "list", served, namespace, query.single_name)
        page = await self.plane.lister.list_page(served, namespace, query)
        items = [_read_manifest(served, entry, metadata_only) for entry in page.entries]
        return Listing(items, str(page.revision))

    async def watch(
        self, kind: GroupKind, *, since: str, namespace: str = "", labels: str = "", metadata_only: bool = False
    ) -> AsyncIterator[WatchEvent]:
        served = self._get_served_kind(kind)
        self._registry.authorize(self._user, "watch", served, namespace)
        matcher = SelectorMatcher(served, ListOptions(label_selector=labels))
        try:
            watch = self.plane.store.watch(served.bucket, since=parse_resource_version(since))
        except Gone as error:
            message = f"too old resource version: {since} ({self.plane.store.revision})"
            raise status_errors.expired(message) from error
        try:
            while batch := await watch.next_batch():
                for event in batch:
                    if not namespace or event.namespace == namespace:
                        for watch_event in _filter_event(served, event, matcher, metadata_only):
                            yield watch_event
        finally:
            watch.close()

    # -- writing -------------------------------------------------------------------------------------------------

    async def create(
        self,
        manifest: Manifest,
        *,
        subresource_of: ResourceKey | None = None,
        dry_run: bool = False,
        manager: str = "",
    ) -> Manifest:
        call = RegistryCall(self._user, manager or DEFAULT_FIELD_MANAGER, dry_run, body_bytes=_encoded_size(manifest))
        actions = self.plane.subresources
        if subresource_of is not None:
            parent = self._get_served_kind(subresource_of.group_kind)
            subresource = _find_subresource(parent, manifest)
            with _add_key_to_errors(subresource_of):
                return await actions.create_subresource(
                    parent, subresource_of.namespace, subresource_of.name, subresource, manifest, call
                )
        served = self._get_kind_of_manifest(manifest)
        namespace = _namespace_for_kind(served, (manifest.get("metadata") or {}).get("namespace") or "")
        if actions.is_review_kind(served):
            return await actions.create_review(served, namespace, manifest, call)
        name = (manifest.get("metadata") or {}).get("name") or ""
        with _add_key_to_errors(ResourceKey(*served.resource.group_kind, namespace, name)):
            return (await self._registry.create(served, namespace, manifest, call)).manifest

    async def apply(self, manifest: Manifest, *, manager: str, force: bool = False, dry_run: bool = False) -> Manifest:
        served, key = self._get_kind_of_manifest(manifest), _read_key(manifest)
        call = RegistryCall(self._user, manager, dry_run, force=force, body_bytes=_encoded_size(manifest))
        namespace = _namespace_for_kind(served, key.namespace)
        with _add_key_to_errors(key):
            return (await self._registry.apply(served, namespace, key.name, manifest, call)).manifest

    async def replace(self, manifest: Manifest, *, dry_run: bool = False, manager: str = "") -> Manifest:
        served, key = self._get_kind_of_manifest(manifest), _read_key(manifest)
        call = RegistryCall(self._user, manager or DEFAULT_FIELD_MANAGER, dry_run, body_bytes=_encoded_size(manifest))
        namespace = _namespace_for_kind(served, key.namespace)
        with _add_key_to_errors(key):
            return (await self._registry.update(served, namespace, key.name, manifest, call)).manifest

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
        served = self._get_served_kind(key.group_kind, split_api_version(api_version)[1])
        call = RegistryCall(self._user, manager or DEFAULT_FIELD_MANAGER, dry_run, body_bytes=_encoded_size(patch))
        subresource_info = served.resource.find_subresource(subresource) if subresource else None
        if subresource and (subresource_info is None or "patch" not in subresource_info.verbs):
            raise status_errors.not_found(served.resource, key.name)
        if subresource == "scale":
            with _add_key_to_errors(key):
                target = (served, key.namespace, key.name)
                scale_result = await self.plane.subresources.patch_scale(*target, patch, kind_of_patch, call)
            return build_scale(served, scale_result.manifest)
        with _add_key_to_errors(key):
            result = await self._registry.patch(
                served, key.namespace, key.name, patch, kind_of_patch, call, subresource=subresource
            )
        return result.manifest

    async def delete(
        self,
        key: ResourceKey,
        *,
        propagation: Propagation = Propagation.BACKGROUND,
        uid: str | None = None,
        version: str | None = None,
        grace: int | None = None,
    ) -> None:
        served = self._get_served_kind(key.group_kind)
        options = DeleteOptions(propagation, grace, uid or "", version or "")
        with _add_key_to_errors(key):
            await self.plane.deleter.delete(
                served, key.namespace, key.name, options, RegistryCall(self._user, DEFAULT_FIELD_MANAGER)
            )

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
        served = self._get_served_kind(key.group_kind)
        lines = self.plane.subresources.stream_logs(
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

    def _get_served_kind(self, kind: GroupKind, version: str = "") -> ApiKind:
        served = self._registry.catalog.find_kind(kind, version)
        if served is None:
            raise status_errors.no_such_resource()
        return served

    def _get_kind_of_manifest(self, manifest: Manifest) -> ApiKind:
        group, version = split_api_version(str(manifest.get("apiVersion") or ""))
        return self._get_served_kind(GroupKind(group, str(manifest.get("kind") or "")), version)


@contextlib.contextmanager
def _add_key_to_errors(key: ResourceKey) -> Iterator[None]:
    """Add the object's key to ClusterErrors raised in the block."""
    try:
        yield
    except ClusterError as error:
        error.key = error.key or key
        raise


def _namespace_for_kind(served: ApiKind, namespace: str) -> str:
    """k8s: the namespace in a manifest of a cluster-scoped kind is ignored."""
    return namespace if served.resource.namespaced else ""


def _read_key(manifest: Manifest) -> ResourceKey:
    try:
        return key_of(manifest)
    except ManifestError as error:
        raise status_errors.bad_request(error.message) from error


def _find_subresource(parent: ApiKind, manifest: Manifest) -> str:
    """The subresource that accepts this kind, for example pods/eviction for an Eviction."""
    group, _ = split_api_version(str(manifest.get("apiVersion") or ""))
    for subresource in parent.resource.subresources:
        if subresource.kind == manifest.get("kind") and subresource.group in ("", group):
            return subresource.name
    raise status_errors.no_such_resource()


def _read_manifest(served: ApiKind, entry: StoreEntry, metadata_only: bool) -> Manifest:
    """The manifest, or only its kind and metadata, so that both have the same key."""
    manifest = served.read_entry(entry)
    if not metadata_only:
        return manifest
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": manifest["metadata"]}


def _filter_event(
    served: ApiKind, event: StoreEvent, matcher: SelectorMatcher, metadata_only: bool
) -> list[WatchEvent]:
    transition = matcher.filter_event(event)
    return [WatchEvent(transition[0].value, _read_manifest(served, transition[1], metadata_only))] if transition else []
