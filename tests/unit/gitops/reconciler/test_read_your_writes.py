"""The client of the engine knows its own writes before a watch delivers them (read your writes)."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.kube.client import Propagation, User
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
KEY = ResourceKey("", "ConfigMap", "default", "a")
CONFIG: Manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}}


async def test_own_write_is_newest_until_the_cache_has_it() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        written = await door.create(CONFIG)
        assert door.find_newest(KEY, cache.get(KEY)) is written
        changed = await door.patch(KEY, {"data": {"x": "1"}})
        cache.put(written)
        assert door.find_newest(KEY, cache.get(KEY)) is changed  # the watch lags behind
        cache.put(later := await cluster.patch(KEY, {"data": {"x": "2"}}))
        assert door.find_newest(KEY, cache.get(KEY)) is later  # another client wrote since
        assert door.find_newest(KEY, written) is written  # from now on only the cache counts


async def test_write_response_is_reused_for_its_watch_event() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        created = await door.create({**CONFIG, "data": {"x": "0"}})
        current = await cluster.get(KEY)
        assert current is not None and current is not created and door.reuse_own_write(current) is created
        cache.put(created)
        door.on_watch_event(None, created)
        assert not door.list_written(KEY.group_kind)  # it is in the cache
        later = await cluster.patch(KEY, {"data": {"x": "1"}})
        assert door.reuse_own_write(later) is later
        cache.put(later)
        assert await door.patch(KEY, {"data": {"x": "1"}}) is later  # no change, and the watch delivered it first


async def test_write_that_leaves_the_spec_equal_reuses_it() -> None:
    key = ResourceKey("", "Service", "default", "a")
    service = {**CONFIG, "kind": "Service", "spec": {"ports": [{"port": 80}]}}
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        created = await door.create(service)
        labelled = await door.patch(key, {"metadata": {"labels": {"x": "1"}}})
        assert labelled["metadata"]["labels"] == {"x": "1"}
        assert labelled["spec"] is created["spec"]
        opened = await door.patch(key, {"spec": {"ports": [{"port": 81}]}})
        assert (opened["spec"]["ports"][0]["port"], labelled["spec"]["ports"][0]["port"]) == (81, 80)


async def test_impersonated_write_is_remembered() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        written = await door.acting_as(User("ann", ("system:masters",))).create(CONFIG)
        assert door.find_newest(KEY, cache.get(KEY)) is written


class Late(EmbeddedCluster):
    """Deletes each patched object, and delivers the watch event, before the patch returns."""

    async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
        patched = await super().patch(key, patch, **terms)
        await self.meanwhile(patched)
        return patched

    door: ReadYourWritesClient

    async def meanwhile(self, manifest: Manifest) -> None:
        await self.delete(key_of(manifest))
        self.door.on_watch_event(manifest, None)


async def test_object_deleted_before_the_patch_response_is_not_remembered() -> None:
    async with ControlPlane.open() as plane:
        cluster = Late(plane)
        cluster.door = door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG)
        await door.patch(KEY, {"data": {"x": "1"}})
        assert door.find_newest(KEY, None) is None
        recreated = await door.create(CONFIG)  # a new object with that name
        assert door.find_newest(KEY, None) is recreated


class LateToCreate(Late):
    async def create(self, manifest: Manifest, **terms: Any) -> Manifest:
        created = await super().create(manifest, **terms)
        await self.meanwhile(created)
        return created


async def test_object_deleted_before_the_create_response_is_not_remembered() -> None:
    async with ControlPlane.open() as plane:
        cluster = LateToCreate(plane)
        cluster.door = door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG)
        assert door.find_newest(KEY, None) is None


async def test_created_events_are_not_remembered() -> None:
    async with EmbeddedCluster.open() as cluster:
        door = ReadYourWritesClient(cluster, lambda key: None)
        about = {"kind": "ConfigMap", "namespace": "default", "name": "a"}
        event = {**CONFIG, "kind": "Event", "involvedObject": about, "reason": "Told", "message": "once"}
        await door.create(event)
        assert not door.list_written(GroupKind("", "Event"))


async def test_dry_run_create_is_not_remembered() -> None:
    async with EmbeddedCluster.open() as cluster:
        door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG, dry_run=True)
        assert door.find_newest(KEY, None) is None


async def test_deleted_object_counts_as_deleted_until_the_cache_has_a_new_one() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        cache.put(created := await door.create(CONFIG))
        await door.delete(KEY)
        assert door.is_deleted(KEY, created)
        cache.put(again := await cluster.create(CONFIG))
        assert not door.is_deleted(KEY, again)


@pytest.mark.parametrize("is_held", [True, False])
async def test_object_with_finalizer_or_foreground_deletion_is_not_deleted_yet(is_held: bool) -> None:
    held = {**CONFIG, "metadata": {**CONFIG["metadata"], "finalizers": ["example.com/held"]}}
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        cache.put(created := await door.create(held if is_held else CONFIG))
        await door.delete(KEY, propagation=Propagation.BACKGROUND if is_held else Propagation.FOREGROUND)
        assert not door.is_deleted(KEY, created)


async def test_write_is_forgotten_when_a_watch_delivers_the_deletion() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        created = await door.create(CONFIG)
        await cluster.delete(key_of(created))
        door.on_watch_event(created, None)
        assert door.find_newest(KEY, None) is None


async def test_write_is_forgotten_when_get_does_not_find_the_object() -> None:
    async with EmbeddedCluster.open() as cluster:
        door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG)
        await cluster.delete(KEY)
        assert await door.get(KEY) is None and door.find_newest(KEY, None) is None


async def test_catalog_of_kinds_is_identical_until_a_crd_changes() -> None:
    async with EmbeddedCluster.open() as cluster:
        time = 0.0
        door = ReadYourWritesClient(cluster, lambda key: None, lambda: time)
        kinds = await door.kinds()
        time = 60.0
        assert await door.kinds() is kinds
        names = {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"}
        schema = {"openAPIV3Schema": {"type": "object"}}
        version = {"name": "v1", "served": True, "storage": True, "schema": schema}
        await door.create(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
            }
        )
        assert GroupKind("example.com", "Widget") in await door.kinds()
