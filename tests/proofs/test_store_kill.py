"""Acknowledged writes of the store survive kill -9, and no revision is assigned twice.

A forked writer acknowledges writes through a pipe and is killed at a random time; then the store is opened and compared
with all acknowledgements so far. Writes and compaction run during every kill, recovery from the last kill in some.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

from argosy.sandbox.store import DELETED, Retention, Store, sqlite_journal
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.tier("test", "prove")

BUCKETS = ("core/configmaps", "core/secrets")
KEY = bytes(range(32))
ACK = struct.Struct("<QIHB")  # revision, life, key, deleted
KEYS = 40
WRITERS = 8


class Lost(AssertionError):
    """A guarantee of the store is violated."""


def open_store(path: Path) -> object:
    return Store.open(path, key=KEY, encrypted_buckets=frozenset({BUCKETS[1]}), retention=Retention(max_revisions=300))


def body(life: int, key: int, revision: int) -> bytes:
    return b"%d %d %d " % (life, key, revision) + b"x" * (revision * 37 % 900)


async def write(path: Path, life: int, seed: int, acks: int, *, ack_early: bool) -> None:
    rng = random.Random(seed)
    store = await open_store(path)  # type: ignore[misc]

    async def one() -> None:
        while True:
            key = rng.randrange(KEYS)
            bucket, name = BUCKETS[key % 2], f"k{key}"
            delete = rng.random() < 0.2 and store.get_latest(bucket, "ns", name) is not None
            change = store.remove if delete else store.put
            commit = change(bucket, "ns", name, lambda revision, key=key: body(life, key, revision))
            if not ack_early:
                await commit
            os.write(acks, ACK.pack(commit.entry.revision, life, key, delete))
            if ack_early:
                await commit

    await asyncio.gather(*(one() for _ in range(WRITERS)))


def fork_writer(path: Path, life: int, seed: int, *, ack_early: bool) -> tuple[int, int]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            asyncio.run(write(path, life, seed, writing, ack_early=ack_early))
        finally:
            os._exit(3)
    os.close(writing)
    return pid, reading


def kill_after(pid: int, reading: int, seconds: float) -> list[tuple[int, int, int, int]]:
    """Kill the writer `seconds` after its first acknowledgement, or after its start if negative."""
    if seconds >= 0:
        select.select([reading], [], [], HANG_SECONDS)
    time.sleep(abs(seconds))
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    data = b""
    while piece := os.read(reading, 65536):
        data += piece
    os.close(reading)
    if os.WIFEXITED(status):
        raise Lost(f"the writer ended by itself with {os.WEXITSTATUS(status)}")
    return [ACK.unpack_from(data, at) for at in range(0, len(data) - len(data) % ACK.size, ACK.size)]


@dataclass
class Ledger:
    """All acknowledged writes of all writer processes."""

    newest: int = 0
    by_key: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # key → revision, life, deleted
    total: int = 0

    def add(self, acks: list[tuple[int, int, int, int]], floor: int) -> None:
        for revision, life, key, deleted in acks:
            if revision <= floor:
                raise Lost(f"revision {revision} was given out again: {floor} was known before this life")
            if revision > self.by_key.get(key, (0, 0, 0))[0]:
                self.by_key[key] = revision, life, deleted
            self.newest = max(self.newest, revision)
        self.total += len(acks)


async def check(path: Path, ledger: Ledger, life: int) -> int:
    store = await open_store(path)  # type: ignore[misc]
    try:
        if store.revision < ledger.newest:
            raise Lost(f"the newest revision is {store.revision}, {ledger.newest} was acknowledged")
        for key, (revision, wrote, deleted) in ledger.by_key.items():
            entry = store.get(BUCKETS[key % 2], "ns", f"k{key}")
            body_revision = 0 if entry is None else int(entry.body.split()[2])
            if entry is not None and body_revision != entry.revision:
                raise Lost(f"k{key} has the body of {body_revision} at {entry.revision}")
            if entry is not None and entry.revision == revision and (deleted or int(entry.body.split()[0]) != wrote):
                raise Lost(f"revision {revision} was given out twice")
            if deleted and entry is not None and entry.revision < revision:
                raise Lost(f"k{key} was removed at {revision} and is back as of {entry.revision}")
            if not deleted and (entry is None or entry.revision < revision):
                # It may be gone or older only if this process removed it later, without an acknowledgement.
                last = await newest_event(store, key)
                if last <= revision:
                    raise Lost(f"k{key}: acknowledged at {revision}, found {entry and entry.revision}")
        await check_history(store)
        if not await store.matches_disk():
            raise Lost("memory and disk differ")
        return int(store.revision)
    finally:
        await store.close()


async def newest_event(store: Store, key: int) -> int:
    events = await history(store, BUCKETS[key % 2])
    return max((event.revision for event in events if event.name == f"k{key}" and event.type is DELETED), default=0)


async def history(store: Store, bucket: str) -> list[object]:
    watch, events = store.watch(bucket, since=store.compacted), []
    while watch.position < store.revision:
        events += await watch.next_batch(timeout=0)
    watch.close()
    return events


async def check_history(store: Store) -> None:
    revisions = sorted([event.revision for bucket in BUCKETS for event in await history(store, bucket)])
    if revisions != list(range(store.compacted + 1, store.revision + 1)):
        raise Lost(f"the history after {store.compacted} has holes or doubles: {revisions}")


def prove(path: Path, rng: random.Random, kills: int, *, ack_early: bool = False) -> Ledger:
    ledger, floor, files = Ledger(), 0, 0
    for life in range(1, kills + 1):
        if life % 50 == 1:  # a new file from time to time, so that its first start is killed too
            files, ledger, floor = files + 1, Ledger(total=ledger.total), 0
        target = path / f"{files}.db"
        pid, reading = fork_writer(target, life, rng.randrange(2**32), ack_early=ack_early)
        moment = -rng.uniform(0, 0.03) if rng.random() < 0.15 else rng.uniform(0, 0.02)
        ledger.add(kill_after(pid, reading, moment), floor)
        floor = asyncio.run(check(target, ledger, life))
        if life % 25 == 0 or life == kills:
            assert apsw.Connection(str(target)).pragma("integrity_check") == "ok"
    return ledger


@pytest.fixture(autouse=True)
def much_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run checkpoints and compaction so often that many kills happen during them."""
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_CHECKPOINT", 60)
    monkeypatch.setattr(sqlite_journal, "REVISIONS_PER_COMPACTION", 40)


def test_no_acknowledged_write_is_lost_by_kill_9(
    tmp_path: Path, rng: random.Random, size: Callable[[int], int]
) -> None:
    kills = size(900)
    ledger = prove(tmp_path, rng, kills)
    print(f"{kills} kills, {ledger.total} acknowledged writes, none lost")
    assert ledger.total >= kills, "too little was written for a proof"


def test_proof_detects_an_acknowledgement_before_the_commit(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(Lost, match="acknowledged"):
        prove(tmp_path, rng, 60, ack_early=True)
