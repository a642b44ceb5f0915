"""What an engine wrote itself is known to it before any watch tells of it."""

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


async def test_what_was_written_counts_until_the_cache_has_heard_of_it() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        written = await door.create(CONFIG)
        assert door.find_newest(KEY, cache.get(KEY)) is written
        changed = await door.patch(KEY, {"data": {"x": "1"}})
        cache.put(written)
        assert door.find_newest(KEY, cache.get(KEY)) is changed  # the watch is behind
        cache.put(later := await cluster.patch(KEY, {"data": {"x": "2"}}))
        assert door.find_newest(KEY, cache.get(KEY)) is later  # and somebody else was here since
        assert door.find_newest(KEY, written) is written  # by now only the cache is asked


async def test_an_answer_and_what_a_watch_tells_of_it_are_one() -> None:
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
        assert await door.patch(KEY, {"data": {"x": "1"}}) is later  # nothing changed, and the watch was faster


async def test_what_was_written_as_another_is_known_as_well() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        written = await door.acting_as(User("ann", ("system:masters",))).create(CONFIG)
        assert door.find_newest(KEY, cache.get(KEY)) is written


class Late(EmbeddedCluster):
    """Answers to patches come later than what watches tell."""

    async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
        patched = await super().patch(key, patch, **terms)
        await self.meanwhile(patched)
        return patched

    door: ReadYourWritesClient

    async def meanwhile(self, manifest: Manifest) -> None:
        await self.delete(key_of(manifest))
        self.door.on_watch_event(manifest, None)


async def test_what_went_before_the_answer_to_a_write_came_is_gone() -> None:
    async with ControlPlane.open() as plane:
        cluster = Late(plane)
        cluster.door = door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG)
        await door.patch(KEY, {"data": {"x": "1"}})
        assert door.find_newest(KEY, None) is None
        recreated = await door.create(CONFIG)  # another of that name
        assert door.find_newest(KEY, None) is recreated


class LateToCreate(Late):
    async def create(self, manifest: Manifest, **terms: Any) -> Manifest:
        created = await super().create(manifest, **terms)
        await self.meanwhile(created)
        return created


async def test_what_went_before_the_answer_to_its_creation_came_is_gone() -> None:
    async with ControlPlane.open() as plane:
        cluster = LateToCreate(plane)
        cluster.door = door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG)
        assert door.find_newest(KEY, None) is None


async def test_events_are_not_remembered_since_nobody_follows_them() -> None:
    async with EmbeddedCluster.open() as cluster:
        door = ReadYourWritesClient(cluster, lambda key: None)
        about = {"kind": "ConfigMap", "namespace": "default", "name": "a"}
        event = {**CONFIG, "kind": "Event", "involvedObject": about, "reason": "Told", "message": "once"}
        await door.create(event)
        assert not door.list_written(GroupKind("", "Event"))


async def test_what_was_only_tried_out_is_not_known() -> None:
    async with EmbeddedCluster.open() as cluster:
        door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG, dry_run=True)
        assert door.find_newest(KEY, None) is None


async def test_what_was_deleted_counts_as_gone_until_the_cache_tells_otherwise() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        cache.put(created := await door.create(CONFIG))
        await door.delete(KEY)
        assert door.is_deleted(KEY, created)
        cache.put(again := await cluster.create(CONFIG))
        assert not door.is_deleted(KEY, again)


@pytest.mark.parametrize("is_held", [True, False])
async def test_what_stays_for_a_while_after_it_was_deleted_is_not_gone(is_held: bool) -> None:
    held = {**CONFIG, "metadata": {**CONFIG["metadata"], "finalizers": ["example.com/held"]}}
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        cache.put(created := await door.create(held if is_held else CONFIG))
        await door.delete(KEY, propagation=Propagation.BACKGROUND if is_held else Propagation.FOREGROUND)
        assert not door.is_deleted(KEY, created)


async def test_one_that_a_watch_saw_go_is_not_remembered() -> None:
    async with EmbeddedCluster.open() as cluster:
        cache = InformerCache()
        door = ReadYourWritesClient(cluster, cache.get)
        created = await door.create(CONFIG)
        await cluster.delete(key_of(created))
        door.on_watch_event(created, None)
        assert door.find_newest(KEY, None) is None


async def test_one_that_was_asked_for_and_is_not_there_is_not_remembered() -> None:
    async with EmbeddedCluster.open() as cluster:
        door = ReadYourWritesClient(cluster, lambda key: None)
        await door.create(CONFIG)
        await cluster.delete(KEY)
        assert await door.get(KEY) is None and door.find_newest(KEY, None) is None


async def test_kinds_are_the_same_value_until_a_definition_changes() -> None:
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
