"""Informer: the cache converges to the cluster state, and each change is reported once despite network faults."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import ClusterError, Forbidden, Gone, TransientError
from argosy.kube.client import Cluster, WatchEvent
from argosy.kube.controller import informer as module
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import Backoff
from argosy.kube.controller.informer import Informer
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.deadlines import HANG_SECONDS, wait_until_async
from support.faulty_client import Faulty
from support.loop_clock import turns

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECONNECT_BACKOFF", Backoff(0.001, 0.01))
    monkeypatch.setattr(module, "NOT_SERVED_BACKOFF", Backoff(0.01, 0.01))


def config(namespace: str, name: str, value: str = "0") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"x": value},
    }


class Told:
    """Listener that records (name, version before, version after) of each change."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []

    def __call__(self, before: Manifest | None, after: Manifest | None) -> None:
        manifest = after or before
        assert manifest is not None
        self.changes.append((manifest["metadata"]["name"], _version(before), _version(after)))

    def names(self) -> list[str]:
        return [name for name, _, _ in self.changes]


def _version(manifest: Manifest | None) -> str:
    return manifest["metadata"]["resourceVersion"] if manifest else ""


@contextlib.asynccontextmanager
async def informing(
    cluster: Any, namespace: str, kind: GroupKind = CONFIG_MAP, **settings: Any
) -> AsyncIterator[tuple[Informer, InformerCache, Told]]:
    cache, listener = InformerCache(), Told()
    one = Informer(cluster, kind, cache, namespace=namespace, **settings)
    one.listeners.append(listener)
    task = asyncio.create_task(one.run())
    try:
        await asyncio.wait_for(one.synced.wait(), HANG_SECONDS)
        yield one, cache, listener
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def agrees(cluster: Cluster, cache: InformerCache, namespace: str) -> bool:
    listing = await cluster.list(CONFIG_MAP, namespace=namespace)
    return sorted(map(_version, listing.items)) == sorted(map(_version, cache.list(CONFIG_MAP)))


async def test_existing_objects_and_changes_are_reported_once(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    await cluster.create(config(namespace, "a"))
    async with informing(cluster, namespace) as (_, cache, listener):
        assert [manifest["metadata"]["name"] for manifest in cache.list(CONFIG_MAP)] == ["a"]
        config_map = await cluster.create(config(namespace, "b"))
        changed = await cluster.patch(key_of(config_map), {"data": {"x": "1"}})
        await cluster.delete(key_of(config_map))
        await eventually(lambda: len(listener.changes) >= 4)
        assert listener.names() == ["a", "b", "b", "b"]
        assert listener.changes[1:] == [
            ("b", "", _version(config_map)),
            ("b", _version(config_map), _version(changed)),
            ("b", _version(changed), ""),
        ]
        assert await agrees(cluster, cache, namespace)


async def test_ended_watch_resumes_from_the_last_event_without_a_list(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    lists = 0

    def count(verb: str) -> None:
        nonlocal lists
        lists += verb == "list"

    faulty = Faulty(cluster, count)
    faulty.events_until_cut = 1
    async with informing(faulty, namespace) as (_, _, listener):
        config_maps = [await cluster.create(config(namespace, name)) for name in "abc"]
        await eventually(lambda: len(listener.changes) == 3 and len(faulty.watched_since) >= 4)
        assert listener.names() == ["a", "b", "c"]
        assert faulty.watched_since[1:4] == [_version(manifest) for manifest in config_maps]
        assert lists == 1


async def test_deletion_during_a_lost_watch_history_is_reported(
    cluster: Cluster, namespace: str, eventually: Any
) -> None:
    remaining, lost = [await cluster.create(config(namespace, name)) for name in ("kept", "lost")]
    away = asyncio.Event()

    def gone(verb: str) -> Exception | None:
        if verb == "list" and away.is_set():
            return TransientError("still away")
        return Gone("compacted") if verb in ("watch", "event") and away.is_set() else None

    faulty = Faulty(cluster, gone)
    async with informing(faulty, namespace) as (_, cache, listener):
        away.set()
        await cluster.delete(key_of(lost))
        await cluster.create(config(namespace, "new"))
        await turns()
        away.clear()
        await eventually(
            lambda: {manifest["metadata"]["name"] for manifest in cache.list(CONFIG_MAP)} == {"kept", "new"}
        )
        assert (
            listener.names().count("kept") == 1
            and _version(remaining) in listener.changes[0][2] + listener.changes[1][2]
        )
        assert ("lost", _version(lost), "") in listener.changes


@pytest.mark.parametrize("seed", range(3))
async def test_no_change_is_lost_or_duplicated_under_random_faults(
    cluster: Cluster, namespace: str, eventually: Any, seed: int
) -> None:
    chance = random.Random(seed)
    faults = [lambda: None] * 8 + [
        lambda: TransientError("down"),
        lambda: Gone("old"),
        lambda: ClusterError("no", code=500),
    ]
    faulty = Faulty(cluster, lambda verb: chance.choice(faults)())
    async with informing(faulty, namespace) as (_, cache, listener):
        for number in range(120):
            faulty.events_until_cut = chance.randrange(4)
            name = chance.choice("abcdef")
            key = ResourceKey("", "ConfigMap", namespace, name)
            if await cluster.get(key) is None:
                await cluster.create(config(namespace, name))
            elif chance.random() < 0.3:
                await cluster.delete(key)
            else:
                await cluster.patch(key, {"data": {"x": str(number)}})
        faulty.fault = lambda verb: None
        faulty.events_until_cut = 0
        final = sorted(map(_version, (await cluster.list(CONFIG_MAP, namespace=namespace)).items))
        await eventually(lambda: sorted(map(_version, cache.list(CONFIG_MAP))) == final)
    state: dict[str, str] = {}
    for name, before, after in listener.changes:  # each change starts at the version where the last one ended
        assert state.get(name, "") == before != after
        state[name] = after
    assert sorted(version for version in state.values() if version) == final


async def test_new_kind_is_found_and_removed_kind_is_emptied(
    cluster: Cluster, namespace: str, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    kind = GroupKind("late.example", "Late")
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "lates.late.example"},
        "spec": {
            "group": "late.example",
            "scope": "Namespaced",
            "names": {"plural": "lates", "kind": "Late"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    async with informing(cluster, namespace, kind) as (_, cache, listener):
        assert cache.list(kind) == []
        created_definition = await cluster.create(definition)
        await eventually_created(
            cluster,
            {"apiVersion": "late.example/v1", "kind": "Late", "metadata": {"name": "l", "namespace": namespace}},
        )
        await eventually(lambda: listener.names() == ["l"])
        await cluster.delete(key_of(created_definition))
        await eventually(lambda: cache.list(kind) == [] and listener.names() == ["l", "l"])
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


async def eventually_created(cluster: Cluster, manifest: Manifest) -> None:
    async def is_created() -> bool:
        with contextlib.suppress(ClusterError):
            await cluster.create(manifest)
            return True
        return False

    await wait_until_async(is_created, "the new kind is served")


async def test_forbidden_kind_is_never_synced(cluster: Cluster, namespace: str) -> None:
    refusals = 0

    def refuse(verb: str) -> Exception | None:
        nonlocal refusals
        refusals += verb == "list"
        return Forbidden("no") if verb == "list" else None

    one = Informer(Faulty(cluster, refuse), CONFIG_MAP, InformerCache(), namespace=namespace)
    task = asyncio.create_task(one.run())
    await wait_until_async(lambda: refusals, "it was refused")
    await turns()
    assert not one.synced.is_set()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_metadata_only_informer_uses_the_same_key(cluster: Cluster, namespace: str, eventually: Any) -> None:
    config_map = await cluster.create(config(namespace, "a"))
    async with informing(cluster, namespace, metadata_only=True) as (_, cache, _told):
        assert cache.get(key_of(config_map)) == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": config_map["metadata"],
        }
        await cluster.delete(key_of(config_map))
        await eventually(lambda: cache.list(CONFIG_MAP) == [])


async def test_reconnect_backoff_grows_while_the_server_is_unavailable(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECONNECT_BACKOFF", Backoff(1, 8, jitter=0))
    faulty = Faulty(cluster, lambda verb: TransientError("away"))
    one = Informer(faulty, CONFIG_MAP, InformerCache(), namespace=namespace, clock=clock)
    task = asyncio.create_task(one.run())
    waits = []
    for _ in range(5):
        await eventually(clock.waits)
        waits.append(clock.waits()[0])
        clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 8]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class FalseDeletions(Faulty):
    """Cluster whose watch reports each change as a deletion and then ends."""

    async def watch(self, kind: Any, *, since: str, **named: Any) -> AsyncIterator[WatchEvent]:
        self.watched_since.append(since)
        async for event in self._cluster.watch(kind, since=since, **named):
            yield event._replace(type="DELETED")
            return


async def test_object_falsely_reported_as_deleted_returns_with_the_next_list(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any
) -> None:
    lists: list[str] = []
    liar = FalseDeletions(cluster, lambda verb: lists.append(verb) if verb == "list" else None)
    config_map = await cluster.create(config(namespace, "a"))
    async with informing(liar, namespace, clock=clock) as (_, cache, listener):
        await cluster.patch(key_of(config_map), {"data": {"x": "1"}})
        await eventually(lambda: listener.names() == ["a", "a"] and clock.waits())
        clock.advance(module.RELIST_INTERVAL_SECONDS / 2)
        await eventually(lambda: len(liar.watched_since) == 2)
        assert cache.list(CONFIG_MAP) == [] and lists == ["list"], "the watch goes on from its last event"
        clock.advance(module.RELIST_INTERVAL_SECONDS / 2)
        other = await cluster.create(config(namespace, "b"))
        await eventually(lambda: len(liar.watched_since) == 3)
        assert lists == ["list", "list"]
        assert {key_of(manifest) for manifest in cache.list(CONFIG_MAP)} == {key_of(config_map), key_of(other)}
        assert await agrees(cluster, cache, namespace)


@pytest.mark.parametrize("error", [ClusterError("starting", code=503), TransientError("dropped"), Gone("expired")])
async def test_kind_stays_known_and_watched_if_its_hourly_list_fails(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any, error: Exception
) -> None:
    lists: list[Exception | None] = []

    def fail_second_list(verb: str) -> Exception | None:
        if verb != "list":
            return None
        lists.append(error if len(lists) == 1 else None)
        return lists[-1]

    liar, reports = FalseDeletions(cluster, fail_second_list), list[Exception | None]()
    config_map = await cluster.create(config(namespace, "a"))
    async with informing(liar, namespace, clock=clock) as (one, cache, _):
        one.report_error = reports.append
        await eventually(lambda: liar.watched_since)
        clock.advance(module.RELIST_INTERVAL_SECONDS)
        patched = await cluster.patch(key_of(config_map), {"data": {"x": "1"}})
        await eventually(lambda: len(liar.watched_since) == 2)
        assert lists == [None, error] and reports == [], "nobody is told that the kind is unknown"
        assert liar.watched_since[1] == _version(patched), "the watch goes on from its last event"
        clock.advance(2 * module.SHORT_WATCH_SECONDS)
        await cluster.create(config(namespace, "b"))
        await eventually(lambda: len(liar.watched_since) == 3)
        assert lists == [None, error, None] and reports == [None]
        assert await agrees(cluster, cache, namespace)


async def test_kind_is_relisted_after_an_hour_if_each_watch_is_cut(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any
) -> None:
    lists: list[str] = []

    def cut(verb: str) -> Exception | None:
        lists.extend([verb] if verb == "list" else [])
        return TransientError("connection reset") if verb == "event" else None

    faulty = Faulty(cluster, cut)
    async with informing(faulty, namespace, clock=clock):
        await eventually(lambda: faulty.watched_since)
        clock.advance(module.RELIST_INTERVAL_SECONDS)
        await cluster.create(config(namespace, "a"))
        await eventually(clock.waits)
        clock.advance(clock.waits()[0])
        await eventually(lambda: len(faulty.watched_since) == 2)
        assert lists == ["list", "list"]


@pytest.mark.parametrize("code", [401, 403, 405])
async def test_refused_hourly_list_is_reported(
    cluster: Cluster, namespace: str, eventually: Any, clock: Any, code: int
) -> None:
    liar, reports = FalseDeletions(cluster), list[Exception | None]()
    async with informing(liar, namespace, clock=clock) as (one, _, _):
        one.report_error, refusal = reports.append, ClusterError("no", code=code)
        liar.fault = lambda verb: refusal if verb == "list" else None
        await eventually(lambda: liar.watched_since)
        clock.advance(module.RELIST_INTERVAL_SECONDS)
        await cluster.create(config(namespace, "a"))
        await eventually(lambda: reports == [refusal])
