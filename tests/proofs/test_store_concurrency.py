"""No update of the store is lost, and revisions are unique and follow real time.

Sixteen tasks read, wait, and write back the value plus one if the revision is unchanged: optimistic concurrency with
resourceVersion, as every API client does it. The history of all calls is then checked.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from argosy.sandbox.store import Store, StoreEntry

pytestmark = pytest.mark.tier("test", "prove")

BUCKET = "core/configmaps"
TASKS = 16
KEYS = 24
Current = Callable[[Store, str], StoreEntry | None]


class Broken(AssertionError):
    """A guarantee of the store is violated."""


class Write(NamedTuple):
    started: int
    ended: int
    revision: int
    key: str
    count: int
    over: int  # the revision that was read before the write


@dataclass
class Calls:
    """All calls, with one logical clock for their starts and ends."""

    clock: int = 0
    writes: list[Write] = field(default_factory=list)
    acked: dict[str, int] = field(default_factory=dict)
    reads: int = 0
    conflicts: int = 0

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def done(self) -> int:
        return len(self.writes) + self.conflicts


def latest(store: Store, key: str) -> StoreEntry | None:
    return store.get_latest(BUCKET, "ns", key)


def committed(store: Store, key: str) -> StoreEntry | None:
    return store.get(BUCKET, "ns", key)


async def client(store: Store, rng: random.Random, calls: Calls, operations: int, current: Current) -> None:
    while calls.done() < operations:
        key = f"k{rng.randrange(KEYS)}"
        started, acknowledged = calls.tick(), calls.acked.get(key, 0)
        read = store.get(BUCKET, "ns", key)
        count, over = (int(read.body), read.revision) if read else (0, 0)
        calls.reads += 1
        if over < acknowledged:
            raise Broken(f"{key}: read {over} after {acknowledged} was acknowledged")
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)
        now = current(store, key)
        if (now.revision if now else 0) != over:
            calls.conflicts += 1
            await store.wait_until_durable()
            continue
        entry = await store.put(BUCKET, "ns", key, lambda _, count=count: b"%d" % (count + 1))
        calls.acked[key] = max(calls.acked.get(key, 0), entry.revision)
        calls.writes.append(Write(started, calls.tick(), entry.revision, key, count + 1, over))


def check(calls: Calls, store: Store) -> None:
    newest_start, last, ordered = 0, {}, sorted(calls.writes, key=lambda write: write.revision)
    if [write.revision for write in ordered] != list(range(1, len(ordered) + 1)):
        raise Broken("revisions are not unique and without a gap")
    for write in ordered:
        if write.ended < newest_start:
            raise Broken(f"revision {write.revision} ended before a smaller one had started")
        newest_start = max(newest_start, write.started)
        if write.over != last.get(write.key, 0):
            raise Broken(f"{write.key}: {write.revision} was written over {write.over}, not {last.get(write.key, 0)}")
        last[write.key] = write.revision
    total = sum(int(entry.body) for entry in store.list(BUCKET))
    if total != len(calls.writes):
        raise Broken(f"{len(calls.writes)} updates, and the counters say {total}")


async def run(path: Path | None, rng: random.Random, operations: int, current: Current) -> Calls:
    store, calls = await Store.open(path), Calls()
    async with asyncio.TaskGroup() as group:
        for _ in range(TASKS):
            group.create_task(client(store, random.Random(rng.random()), calls, operations, current))
    check(calls, store)
    await store.close()
    return calls


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_no_update_is_lost_and_revisions_follow_real_time(
    tmp_path: Path, rng: random.Random, size: Callable[[int], int], where: str
) -> None:
    operations = size(50_000)
    calls = asyncio.run(run(tmp_path / "argosy.db" if where == "disk" else None, rng, operations, latest))
    print(f"{where}: {len(calls.writes)} writes, {calls.reads} reads, {calls.conflicts} conflicts")
    assert len(calls.writes) > operations / 4 and calls.conflicts > operations / 50, "too little happened for a proof"


def test_proof_detects_a_check_against_committed_state_only(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(Broken):
        asyncio.run(run(tmp_path / "argosy.db", rng, 2_500, committed))


def test_proof_detects_a_stale_read(tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    past: dict[str, StoreEntry] = {}
    get = Store.get

    def stale(store: Store, bucket: str, namespace: str, name: str) -> StoreEntry | None:
        entry = get(store, bucket, namespace, name)
        older = past.get(name)
        if entry is not None:
            past[name] = entry
        return older if older is not None and rng.random() < 0.01 else entry

    monkeypatch.setattr(Store, "get", stale)
    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(run(tmp_path / "argosy.db", rng, 5_000, latest))
    assert caught.group_contains(Broken, match="was acknowledged")
