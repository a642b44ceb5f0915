"""InformerSet: all served kinds in one cache, also when kinds appear, disappear or cannot be listed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import pytest

from argosy.errors import ArgosyError, ClusterError, Forbidden, Gone, TransientError
from argosy.kube.client import Catalog, Cluster, KindInfo
from argosy.kube.controller import informer
from argosy.kube.controller import informer_set as module
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import Backoff
from argosy.kube.controller.informer_set import InformerSet
from argosy.kube.controller.log_context import get_log_fields, with_log_fields
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, CRD, SECRET
from support.deadlines import HANG_SECONDS
from support.faulty_client import Faulty

pytestmark = pytest.mark.anyio
BOAT = GroupKind("sea.example", "Boat")


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "RECONNECT_BACKOFF", Backoff(0.001, 0.01))
    monkeypatch.setattr(informer, "NOT_SERVED_BACKOFF", Backoff(0.01, 0.01))
    monkeypatch.setattr(module, "UNREACHABLE_BACKOFF", Backoff(0.001, 0.01))
    monkeypatch.setattr(module, "REFUSED_BACKOFF", Backoff(0.02, 0.02))
    monkeypatch.setattr(module, "MIN_DISCOVERY_INTERVAL_SECONDS", 0.001)
    monkeypatch.setattr(module, "DISCOVERY_DELAYS_SECONDS", (0.01, 0.02, 0.05, 0.1))


def config(namespace: str, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def boats(*versions: str) -> Manifest:
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.sea.example"},
        "spec": {"group": "sea.example", "scope": "Namespaced", "names": {"plural": "boats", "kind": "Boat"},
                 "versions": [{"name": version, "served": True, "storage": index == 0,
                               "schema": {"openAPIV3Schema": {"type": "object"}}}
                              for index, version in enumerate(versions or ("v1",))]},
    }  # fmt: skip


def boat(namespace: str, name: str = "b") -> Manifest:
    return {"apiVersion": "sea.example/v1", "kind": "Boat", "metadata": {"name": name, "namespace": namespace}}


class Following:
    def __init__(self, cluster: Any, **settings: Any) -> None:
        self.cache, self.out = InformerCache(), set[GroupKind]()
        self.changes: list[tuple[str, bool]] = []  # name, whether it exists
        self.all = InformerSet(cluster, self.is_watched, self.cache, self.note, definition_kinds=[CRD], **settings)

    def is_watched(self, kind: GroupKind, verbs: Sequence[str]) -> bool:
        return kind not in self.out

    def note(self, before: Manifest | None, after: Manifest | None) -> None:
        manifest = after or before
        assert manifest is not None
        self.changes.append((manifest["metadata"]["name"], after is not None))

    def names(self, kind: GroupKind) -> list[str]:
        return sorted(manifest["metadata"]["name"] for manifest in self.cache.list(kind))


@contextlib.asynccontextmanager
async def following(cluster: Any, **settings: Any) -> AsyncIterator[Following]:
    follower = Following(cluster, **settings)
    task = asyncio.create_task(follower.all.run())
    try:
        await asyncio.wait_for(follower.all.wait_synced(), HANG_SECONDS)
        yield follower
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_all_listable_and_watchable_kinds_are_cached_with_each_change(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    await cluster.create(config(namespace, "a"))
    async with following(cluster) as follower:
        served = {kind for kind, info in (await cluster.kinds()).items() if {"list", "watch"} <= set(info.verbs)}
        assert follower.all.watched_kinds == served and len(served) > 30
        assert follower.cache.get(ResourceKey("", "ConfigMap", namespace, "a")) is not None
        assert namespace in follower.names(GroupKind("", "Namespace"))
        config_map = await cluster.create(config(namespace, "b"))
        await cluster.delete(key_of(config_map))
        await eventually(lambda: ("b", False) in follower.changes)
        assert ("b", True) in follower.changes
        assert not follower.all.errors


async def test_new_kind_is_watched_and_removed_kind_is_dropped(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    async with following(cluster) as follower:
        for _ in range(2):
            definition = await cluster.create(boats())
            await eventually(lambda: BOAT in follower.all.watched_kinds)
            await cluster.create(boat(namespace))
            await eventually(lambda: follower.names(BOAT) == ["b"])
            await cluster.delete(key_of(definition))
            await eventually(lambda: BOAT not in follower.all.watched_kinds)
            assert follower.names(BOAT) == []
        assert [lives for name, lives in follower.changes if name == "b"] == [True, False, True, False]


async def test_change_of_the_preferred_version_is_reported_as_an_update(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    definition = await cluster.create(boats("v1"))
    async with following(cluster) as follower:
        await eventually(lambda: BOAT in follower.all.watched_kinds)
        key = key_of(await cluster.create(boat(namespace)))
        await eventually(lambda: follower.cache.get(key))
        await cluster.patch(key_of(definition), {"spec": boats("v1", "v2")["spec"]})
        await eventually(lambda: (follower.cache.get(key) or {}).get("apiVersion") == "sea.example/v2")
        assert [lives for name, lives in follower.changes if name == "b"] == [True, True]


async def test_excluded_kind_is_not_watched_until_settings_change(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    await cluster.create(config(namespace, "a"))
    follower = Following(cluster)
    follower.out = {CONFIG_MAP}
    task = asyncio.create_task(follower.all.run())
    await follower.all.wait_synced()
    assert CONFIG_MAP not in follower.all.watched_kinds and follower.names(CONFIG_MAP) == []
    follower.out = {SECRET}
    follower.all.rediscover()
    await eventually(lambda: "a" in follower.names(CONFIG_MAP))
    follower.out = {CONFIG_MAP}
    follower.all.rediscover()
    await eventually(lambda: SECRET in follower.all.watched_kinds and follower.names(CONFIG_MAP) == [])
    assert ("a", False) in follower.changes
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_crds_are_watched_even_if_excluded(cluster: Cluster, eventually: Any) -> None:
    follower = Following(cluster)
    follower.out = {CRD}
    task = asyncio.create_task(follower.all.run())
    await follower.all.wait_synced()
    await cluster.create(boats())
    await eventually(lambda: BOAT in follower.all.watched_kinds)
    assert follower.names(CRD) == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Selective(Faulty):
    """Cluster whose lists fail for one kind or for all kinds, and whose catalog can hide kinds."""

    def __init__(self, cluster: Cluster, error: Exception | None = None, kind: GroupKind | None = SECRET) -> None:
        super().__init__(cluster)
        self.error, self.kind, self.lists, self.hidden = error, kind, 0, set[GroupKind]()
        self.asked = 0

    async def list(self, kind: GroupKind, **named: Any) -> Any:
        is_meant = self.kind in (kind, None)
        self.lists += is_meant
        if is_meant and self.error is not None:
            raise self.error
        return await self._cluster.list(kind, **named)

    async def kinds(self) -> Catalog:
        self._fail("kinds")
        self.asked += 1
        catalog: dict[GroupKind, KindInfo] = dict(await self._cluster.kinds())
        return {kind: info for kind, info in catalog.items() if kind not in self.hidden}


@pytest.mark.parametrize(
    "error",
    [
        Forbidden("no"),
        ClusterError("conversion webhook failed", code=500),
        TransientError("the server behind it is away"),
    ],
)
async def test_kind_that_cannot_be_listed_is_reported_and_blocks_no_other(
    cluster: Cluster, namespace: str, eventually: Any, error: ArgosyError
) -> None:
    await cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace}})
    selective = Selective(cluster, error)
    async with following(selective) as follower:
        assert dict(follower.all.errors) == {SECRET: error}
        assert follower.names(SECRET) == []
        assert (
            follower.all.is_synced(CONFIG_MAP)
            and not follower.all.is_synced(SECRET)
            and not follower.all.is_synced(BOAT)
        )
        selective.error = None
        await eventually(lambda: follower.names(SECRET) == ["s"])
        assert not follower.all.errors and follower.all.is_synced(SECRET)


async def test_kind_with_a_malformed_list_is_reported_and_blocks_no_other(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    created_secret = await cluster.create(secret(namespace, "s"))
    selective = Selective(cluster, KeyError("metadata"))
    async with following(selective) as follower:
        assert str(follower.all.errors[SECRET]) == "Secret: cannot process the server's answer: KeyError"
        assert follower.all.is_synced(CONFIG_MAP) and not follower.all.is_synced(SECRET)
        selective.error = None
        await eventually(lambda: follower.names(SECRET) == ["s"])
        assert not follower.all.errors and follower.all.is_synced(SECRET)
        selective.error = KeyError("metadata")
        selective.fault = lambda verb: KeyError("object") if verb == "event" else None
        await cluster.patch(key_of(created_secret), {"metadata": {"labels": {"a": "1"}}})
        await eventually(lambda: SECRET in follower.all.errors)
        assert not follower.all.is_synced(SECRET)  # its cached objects are stale
        selective.error, selective.fault = None, lambda verb: None
        await eventually(lambda: follower.all.is_synced(SECRET))


async def test_forbidden_kind_is_listed_rarely(
    cluster: Cluster, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REFUSED_BACKOFF", Backoff(600, 600))
    selective = Selective(cluster, Forbidden("no"))
    async with following(selective) as follower:
        await eventually(lambda: selective.asked >= 1)
        assert selective.lists == 1 and SECRET in follower.all.errors


async def test_unavailable_api_server_is_waited_for(cluster: Cluster, eventually: Any) -> None:
    selective = Selective(cluster, TransientError("away"), kind=None)
    follower = Following(selective)
    task = asyncio.create_task(follower.all.run())
    synced = asyncio.create_task(follower.all.wait_synced())
    await eventually(lambda: selective.lists > 20 * module.MAX_LONE_FAILURES * len(follower.all.watched_kinds) > 0)
    assert not synced.done()
    selective.error = None
    await asyncio.wait_for(synced, HANG_SECONDS)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_failed_or_incomplete_discovery_deletes_no_cached_objects(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    await cluster.create(config(namespace, "a"))
    selective = Selective(cluster)
    refused = 0

    def away(verb: str) -> Exception | None:
        nonlocal refused
        refused += verb == "kinds"
        return TransientError("away") if verb == "kinds" else None

    async with following(selective) as follower:
        selective.fault = away
        follower.all.rediscover()
        await eventually(lambda: refused >= 3)
        count_before = selective.asked
        selective.hidden = {CONFIG_MAP}

        def forget_once(verb: str) -> None:
            if verb == "kinds" and selective.asked > count_before:
                selective.hidden = set()

        selective.fault = forget_once
        await eventually(lambda: selective.asked >= count_before + 3)
        assert "a" in follower.names(CONFIG_MAP) and ("a", False) not in follower.changes


async def test_broken_watches_are_resumed(cluster: Cluster, namespace: str, eventually: Any) -> None:
    faulty = Faulty(cluster)
    faulty.events_until_cut = 1
    async with following(faulty) as follower:
        for name in "abc":
            await cluster.create(config(namespace, name))
        await eventually(lambda: set(follower.names(CONFIG_MAP)) >= {"a", "b", "c"})


async def test_failing_listener_does_not_end_the_watch(
    cluster: Cluster, namespace: str, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(before: Manifest | None, after: Manifest | None) -> None:
        raise ValueError("no")

    cache = InformerCache()
    task = asyncio.create_task(InformerSet(cluster, lambda kind, verbs: kind == CONFIG_MAP, cache, fail).run())
    for name in "ab":
        key = key_of(await cluster.create(config(namespace, name)))
        await eventually(lambda key=key: cache.get(key))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert "change listener failed" in caplog.text


async def test_concurrent_lists_are_limited_and_no_task_is_left_running(cluster: Cluster) -> None:
    class Counting(Faulty):
        now = most = 0

        async def list(self, kind: GroupKind, **named: Any) -> Any:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0)
            try:
                return await self._cluster.list(kind, **named)
            finally:
                self.now -= 1

    counting = Counting(cluster)
    before = asyncio.all_tasks()
    async with following(counting, max_concurrent_lists=3):
        assert counting.most == 3
        assert len(asyncio.all_tasks()) > len(before) + 30
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize("seed", range(3))
async def test_cache_converges_to_the_cluster_state_after_random_faults(
    cluster: Cluster, namespace: str, eventually: Any, seed: int
) -> None:
    chance = random.Random(seed)
    faults = [lambda: None] * 8 + [lambda: TransientError("down"), lambda: Gone("old"), lambda: Forbidden("no"),
                                   lambda: ClusterError("no", code=500)]  # fmt: skip
    faulty = Faulty(cluster, lambda verb: chance.choice(faults)())
    defined = key_of(boats())
    async with following(faulty) as follower:
        for _ in range(80):
            faulty.events_until_cut = chance.randrange(4)
            if chance.random() < 0.1:
                await _flip(cluster, boats())
            elif await cluster.get(defined) is not None and chance.random() < 0.5:
                await _flip(cluster, boat(namespace, chance.choice("xyz")))
            else:
                await _flip(cluster, config(namespace, chance.choice("abcdef")))
        faulty.fault, faulty.events_until_cut = (lambda verb: None), 0
        if await cluster.get(defined) is not None:
            with contextlib.suppress(ClusterError):
                await cluster.delete(defined)
        await eventually(lambda: BOAT not in follower.all.watched_kinds)

        async def is_current(kind: GroupKind) -> bool:
            """Compare with a fresh list each time: the deletion of the CRD may still be in progress."""
            listing = await cluster.list(kind)
            return _versions(follower.cache.list(kind)) == _versions(listing.items)

        for kind in follower.all.watched_kinds:
            await eventually(lambda kind=kind: is_current(kind))


def _versions(manifests: Iterable[Manifest]) -> list[tuple[ResourceKey, str]]:
    return sorted((key_of(manifest), manifest["metadata"]["resourceVersion"]) for manifest in manifests)


async def _flip(cluster: Cluster, manifest: Manifest) -> None:
    """Create or delete the object; ignore the error if it or its CRD is being created or deleted."""
    with contextlib.suppress(ClusterError):
        if await cluster.get(key_of(manifest)) is None:
            await cluster.create(manifest)
        else:
            await cluster.delete(key_of(manifest))


class Thrifty:
    """Cache policy: full objects for ConfigMaps and for kinds with a labelled object; managedFields are dropped."""

    def needs_full_objects(self, kind: GroupKind) -> bool:
        return kind == CONFIG_MAP

    def requires_full_kind(self, manifest: Manifest) -> bool:
        return "wanted" in (manifest["metadata"].get("labels") or {})

    def is_trimmed_too_much(self, manifest: Manifest) -> bool:
        return self.requires_full_kind(manifest) and manifest.keys() == {"apiVersion", "kind", "metadata"}

    def trim(self, manifest: Manifest) -> Manifest:
        return {**manifest, "metadata": {**manifest["metadata"], "managedFields": []}}


def secret(namespace: str, name: str, **labels: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "1"}}


async def test_only_metadata_is_cached_of_a_kind_that_is_not_read(cluster: Cluster, namespace: str) -> None:
    for manifest in (config(namespace, "a") | {"data": {"a": "1"}}, secret(namespace, "s")):
        await cluster.create(manifest)
    async with following(cluster, cache_policy=Thrifty()) as follower:
        settings = follower.cache.get(ResourceKey("", "ConfigMap", namespace, "a"))
        assert settings is not None and settings["data"] == {"a": "1"} and not settings["metadata"]["managedFields"]
        cached_secret = follower.cache.get(ResourceKey("", "Secret", namespace, "s"))
        assert cached_secret is not None and cached_secret.keys() == {"apiVersion", "kind", "metadata"}
        assert "managedFields" not in cached_secret["metadata"] and cached_secret["metadata"]["uid"]
        assert follower.all.is_synced(SECRET)


async def test_reading_a_kind_in_full_caches_full_objects(cluster: Cluster, namespace: str, eventually: Any) -> None:
    await cluster.create(secret(namespace, "s"))
    key = ResourceKey("", "Secret", namespace, "s")
    async with following(cluster, cache_policy=Thrifty()) as follower:
        assert not follower.all.is_synced_in_full(SECRET)  # but this call starts the full watch
        await eventually(lambda: follower.all.is_synced_in_full(SECRET))
        assert "data" in (follower.cache.get(key) or {})
        assert [name for name, _ in follower.changes].count("s") == 2  # reported again
        await cluster.patch(key, {"stringData": {"a": "2"}})
        await eventually(lambda: (follower.cache.get(key) or {}).get("data") == {"a": "Mg=="})
        await cluster.delete(key)
        await eventually(lambda: follower.cache.get(key) is None)


async def test_wanted_object_makes_its_kind_full_before_the_first_sync(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    for manifest in (secret(namespace, "a"), secret(namespace, "b", wanted="yes"), secret(namespace, "c")):
        await cluster.create(manifest)
    async with following(cluster, cache_policy=Thrifty()) as follower:
        assert follower.all.is_synced(SECRET)
        assert all("data" in manifest for manifest in follower.cache.list(SECRET, namespace=namespace))


async def test_newly_wanted_object_makes_its_kind_full(cluster: Cluster, namespace: str, eventually: Any) -> None:
    created_secret = await cluster.create(secret(namespace, "a"))
    async with following(cluster, cache_policy=Thrifty()) as follower:
        await cluster.create(secret(namespace, "b", wanted="yes"))
        await eventually(lambda: "data" in (follower.cache.get(key_of(created_secret)) or {}))


async def test_changed_cache_policy_takes_effect_after_rediscovery(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    created_secret = await cluster.create(secret(namespace, "a", later="yes"))
    thrift = Thrifty()
    async with following(cluster, cache_policy=thrift) as follower:
        thrift.requires_full_kind = lambda manifest: "later" in (manifest["metadata"].get("labels") or {})  # type: ignore[method-assign]
        follower.all.rediscover()
        await eventually(lambda: "data" in (follower.cache.get(key_of(created_secret)) or {}))


class Noting(Thrifty):
    """Also records the log fields whenever an object is trimmed."""

    def __init__(self) -> None:
        self.about: list[dict[str, str]] = []

    def trim(self, manifest: Manifest) -> Manifest:
        if manifest["kind"] == SECRET.kind:
            self.about.append(dict(get_log_fields()))
        return super().trim(manifest)


async def test_watch_inherits_no_log_fields_of_its_reader(cluster: Cluster, namespace: str, eventually: Any) -> None:
    await cluster.create(secret(namespace, "s"))
    thrift = Noting()
    with with_log_fields(member="m"):
        async with following(cluster, cache_policy=thrift) as follower:
            with with_log_fields(application="argocd/web"):
                follower.all.is_synced_in_full(SECRET)
            await eventually(lambda: follower.all.is_synced(SECRET))
    assert thrift.about and all(log_fields == {"member": "m"} for log_fields in thrift.about)
