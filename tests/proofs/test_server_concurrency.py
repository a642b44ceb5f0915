"""No update is lost between sixteen concurrent API clients, with every way to change an object.

Counters grow by replace with a resourceVersion and by JSON patch with a test; managers apply their own fields to shared
objects. At the end each counter equals the number of acknowledged increments, and versions follow real time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from argosy.errors import ClusterError, Conflict, Invalid
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.objects import Manifest
from argosy.kube.patch import json_patch
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.store import Store
from support.clusters import TOKEN, configmap, served

pytestmark = pytest.mark.tier("test", "prove")

CLIENTS = 16
COUNTERS = 8
SHARED = 4


class Broken(AssertionError):
    """A guarantee is violated."""


class Write(NamedTuple):
    started: int
    ended: int
    version: int


@dataclass
class Calls:
    """A record of all calls, with one logical clock for their starts and ends."""

    write_goal: int
    clock: int = 0
    writes: list[Write] = field(default_factory=list)
    increments: dict[str, int] = field(default_factory=dict)
    applied: dict[tuple[str, str], str] = field(default_factory=dict)  # (object, manager) → last applied value
    conflicts: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def done(self) -> bool:
        return len(self.writes) + self.conflicts >= self.write_goal

    def wrote(self, started: int, manifest: Manifest) -> None:
        self.writes.append(Write(started, self.tick(), int(manifest["metadata"]["resourceVersion"])))


def key(name: str) -> ResourceKey:
    return ResourceKey("", "ConfigMap", "default", name)


async def read(cluster: Cluster, name: str) -> Manifest:
    manifest = await cluster.get(key(name))
    if manifest is None:
        raise Broken(f"{name} is gone")
    return manifest


async def count_by_replace(cluster: Cluster, rng: random.Random, calls: Calls, number: int) -> None:
    name, started = f"counter-{rng.randrange(COUNTERS)}", calls.tick()
    manifest = await read(cluster, name)
    for _ in range(rng.randrange(3)):
        await asyncio.sleep(0)
    try:
        count = int(manifest["data"]["count"]) + 1
        after = await cluster.replace({**manifest, "data": {"count": str(count), "by": f"replace-{number}"}})
    except Conflict:
        calls.conflicts += 1
        return
    calls.increments[name] += 1
    calls.wrote(started, after)


async def count_by_patch(cluster: Cluster, rng: random.Random, calls: Calls, number: int) -> None:
    name, started = f"counter-{rng.randrange(COUNTERS)}", calls.tick()
    count = (await read(cluster, name))["data"]["count"]
    for _ in range(rng.randrange(3)):
        await asyncio.sleep(0)
    patch = [
        {"op": "test", "path": "/data/count", "value": count},
        {"op": "replace", "path": "/data/count", "value": str(int(count) + 1)},
        {"op": "add", "path": "/data/by", "value": f"patch-{number}"},
    ]
    try:
        after = await cluster.patch(key(name), patch, kind_of_patch=PatchKind.JSON)
    except (Invalid, Conflict):
        calls.conflicts += 1
        return
    calls.increments[name] += 1
    calls.wrote(started, after)


async def apply_own_field(cluster: Cluster, rng: random.Random, calls: Calls, number: int) -> None:
    """Apply one field. A manager is one client, so it knows its last value; it ignores the fields of the others."""
    name, manager, started = f"shared-{rng.randrange(SHARED)}", f"manager-{number}", calls.tick()
    value = f"{calls.tick()}"
    after = await cluster.apply(configmap(name, {manager: value}, namespace="default"), manager=manager)
    calls.applied[name, manager] = value
    calls.wrote(started, after)
    for (other, of), applied_value in calls.applied.items():
        if other == name and of == manager and after["data"].get(of) != applied_value:
            raise Broken(f"{name}: {of} applied {applied_value} and was answered {after['data'].get(of)}")


WAYS = (count_by_replace, count_by_patch, apply_own_field)


async def client(cluster: Cluster, rng: random.Random, calls: Calls, number: int) -> None:
    while not calls.done():
        await rng.choice(WAYS)(cluster, rng, calls, number)


async def run(cluster: Cluster, rng: random.Random, operations: int) -> Calls:
    calls = Calls(operations)
    for number in range(COUNTERS):
        calls.increments[f"counter-{number}"] = 0
        await cluster.create(configmap(f"counter-{number}", {"count": "0"}, namespace="default"))
    async with asyncio.TaskGroup() as group:
        for number in range(CLIENTS):
            group.create_task(client(cluster, random.Random(rng.random()), calls, number))
    await check(cluster, calls)
    return calls


async def check(cluster: Cluster, calls: Calls) -> None:
    for name, count in calls.increments.items():
        stored = (await read(cluster, name))["data"]["count"]
        if int(stored) != count:
            raise Broken(f"{name}: {count} times somebody was told yes, and it says {stored}")
    for (name, manager), value in calls.applied.items():
        stored = await read(cluster, name)
        if stored["data"].get(manager) != value:
            raise Broken(f"{name}: {manager} applied {value}, and it says {stored['data'].get(manager)}")
        owners = {entry["manager"] for entry in stored["metadata"]["managedFields"]}
        if manager not in owners:
            raise Broken(f"{name}: {manager} is no owner any more")
    newest_start, ordered = 0, sorted(calls.writes, key=lambda write: write.version)
    if len({write.version for write in ordered}) != len(ordered):
        raise Broken("a version was given out twice")
    for write in ordered:
        if write.ended < newest_start:
            raise Broken(f"version {write.version} ended before a smaller one had started")
        newest_start = max(newest_start, write.started)


async def embedded(folder: Path, rng: random.Random, operations: int) -> Calls:
    async with served(folder, durable=True) as server:
        return await run(EmbeddedCluster(server.plane), rng, operations)


async def wire(folder: Path, rng: random.Random, operations: int) -> Calls:
    async with served(folder, durable=True) as server:
        connection = Connection(server=server.endpoint.address, ca_file=str(server.authority), token=TOKEN)
        async with await connect(connection) as cluster:
            return await run(cluster, rng, operations)


def prove(door: Callable[..., object], folder: Path, rng: random.Random, operations: int) -> Calls:
    try:
        return asyncio.run(door(folder, rng, operations))  # type: ignore[arg-type, return-value]
    except* (Broken, ClusterError) as broken:
        raise broken.exceptions[0] from None


@pytest.mark.parametrize(("door", "full"), [(embedded, 45_000), (wire, 5_000)], ids=["embedded", "wire"])
def test_no_update_is_lost_between_concurrent_clients(
    memory_path: Path, rng: random.Random, size: Callable[[int], int], door: Callable[..., object], full: int
) -> None:
    operations = size(full)
    calls = prove(door, memory_path / "data", rng, operations)
    print(f"{len(calls.writes)} writes, {calls.conflicts} conflicts")
    assert len(calls.writes) > operations / 4 and calls.conflicts > operations / 50, "too little happened for a proof"


def ignore_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "_check_resource_version", lambda *_, **__: None)


def read_only_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "get_latest", Store.get)


def ignore_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = json_patch.apply

    def lenient(value: object, patch: list[dict[str, object]], **options: object) -> object:
        return apply(value, [step for step in patch if step["op"] != "test"], **options)  # type: ignore[arg-type]

    monkeypatch.setattr(json_patch, "apply", lenient)


@pytest.mark.parametrize("seed_bug", [ignore_versions, read_only_what_is_committed, ignore_tests])
def test_proof_detects_seeded_concurrency_bugs(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None]
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(Broken):
        for turn in range(10):  # a single round may miss the bug by chance, ten will not
            prove(embedded, memory_path / f"data-{turn}", rng, 200)
