"""A store watch delivers every event after its revision once and in order, or raises Gone, and never a wrong Gone.

Sixteen fast and slow watchers disconnect and resume, with a window of a few events and continuous compaction. The
received events are compared with the writers' own record of their writes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from operator import add
from pathlib import Path

import pytest

from argosy.errors import Gone
from argosy.sandbox.store import (
    ADDED,
    DELETED,
    MODIFIED,
    Store,
    StoreEvent,
    event_window,
    history_table,
    sqlite_journal,
)
from argosy.sandbox.store.checksums import compute_compacted_checksum
from argosy.sandbox.store.event_window import BucketEventLog
from argosy.sandbox.store.watch import BucketWatch

pytestmark = pytest.mark.tier("test", "prove")

BUCKETS = ("core/configmaps", "core/pods", "example.com/widgets")
WATCHERS = 16
MOST_TURNS = 10


class Broken(AssertionError):
    """A guarantee is violated."""


@dataclass
class Record:
    """All events as recorded by their writer, by revision."""

    events: dict[int, StoreEvent] = field(default_factory=dict)

    def between(self, bucket: str, after: int, upto: int) -> list[StoreEvent]:
        events = (self.events[revision] for revision in range(after + 1, upto + 1))
        return [event for event in events if event.bucket == bucket]

    def state(self, bucket: str, at: int) -> dict[str, int]:
        state: dict[str, int] = {}
        for event in self.between(bucket, 0, at):
            if event.type is DELETED:
                del state[event.name]
            else:
                state[event.name] = event.revision
        return state


@dataclass
class Tally:
    delivered: int = 0
    resumed: int = 0
    gone: int = 0
    from_disk: int = 0
    snapshots: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, astuple(self), astuple(other)))


async def write(store: Store, rng: random.Random, record: Record, events: int) -> None:
    while len(record.events) < events:
        commits = []
        for _ in range(rng.randint(1, 8)):
            bucket, name = rng.choice(BUCKETS), f"k{rng.randrange(20)}"
            before = store.get_latest(bucket, "ns", name)
            delete = before is not None and rng.random() < 0.3
            commit = (store.remove if delete else store.put)(bucket, "ns", name, lambda r: b"%d" % r)
            entry, kind = commit.entry, DELETED if delete else MODIFIED if before else ADDED
            record.events[entry.revision] = StoreEvent(
                entry.revision, kind, bucket, "ns", name, b"%d" % entry.revision,
                before.body if before else None, before.revision if before else 0,
            )  # fmt: skip
            commits.append(commit)
        await asyncio.gather(*commits)
        if rng.random() < 0.3:
            await asyncio.sleep(rng.random() * 0.01)


async def follow(
    store: Store, rng: random.Random, record: Record, tally: Tally, slowness: float, end: Callable[[], int]
) -> None:
    bucket, position = rng.choice(BUCKETS), 0
    while True:
        try:
            watch = store.watch(bucket, since=position)
        except Gone:
            if position >= store.compacted:
                raise Broken(f"Gone from {position}, compacted is {store.compacted}") from None
            position = await relist(store, record, tally, bucket)
            continue
        try:
            position = await read_on(watch, store, rng, record, tally, slowness, position, end)
        except Gone:
            if position >= store.compacted:
                raise Broken(f"an open watch at {position} is Gone, compacted is {store.compacted}") from None
            position = await relist(store, record, tally, bucket)
        watch.close()
        tally.resumed += 1
        if end() and position >= end():
            return


async def read_on(
    watch: BucketWatch, store: Store, rng: random.Random, record: Record, tally: Tally, slowness: float, position: int,
    end: Callable[[], int],
) -> int:  # fmt: skip
    """Read a few batches, check each against the record, and disconnect."""
    for _ in range(rng.randint(1, 6)):
        floor = watch._event_log.floor
        batch = await watch.next_batch(timeout=0.05)
        upto = batch[-1].revision if batch else position
        expected = record.between(watch._bucket, position, upto)
        if batch != expected:
            raise Broken(f"{watch._bucket} after {position}: {batch} is not {expected}")
        tally.delivered += len(batch)
        tally.from_disk += position < floor
        position = upto
        quiet = watch.position
        if quiet < position or record.between(watch._bucket, position, quiet):
            raise Broken(f"a bookmark at {quiet} skips events after {position}")
        position = quiet
        if end() and position >= end():
            break
        await asyncio.sleep(rng.random() * slowness)
    return position


async def relist(store: Store, record: Record, tally: Tally, bucket: str) -> int:
    tally.gone += 1
    entries, revision = store.list(bucket), store.revision
    if {entry.name: entry.revision for entry in entries} != record.state(bucket, revision):
        raise Broken(f"the list of {bucket} at {revision} is not its state")
    return revision


async def compact(store: Store, rng: random.Random, record: Record, tally: Tally, done: Callable[[], bool]) -> None:
    """Compact continuously and probe the boundary: reads work at it and raise Gone one revision below it."""
    while not done():
        retained = rng.choice((0, 50, 200, 200, 200))
        if store.revision - retained > store.compacted:
            await store.compact(rng.randint(store.compacted, store.revision - retained))
        border, bucket = store.compacted, rng.choice(BUCKETS)
        if border:
            for call in (lambda: store.watch(bucket, since=border - 1), lambda: store.list_at(bucket, "", border - 1)):  # noqa: B023
                try:
                    answer = call()
                    if not isinstance(answer, BucketWatch):
                        await answer
                except Gone:
                    continue
                raise Broken(f"revision {border - 1} is answered, compacted is {border}")
        try:
            entries = await store.list_at(bucket, "", border)
            if {entry.name: entry.revision for entry in entries} != record.state(bucket, border):
                raise Broken(f"the snapshot of {bucket} at {border} is not its state then")
            tally.snapshots += 1
        except Gone:
            raise Broken(f"the snapshot at {border} is Gone, compacted is {store.compacted}") from None
        await asyncio.sleep(rng.random() * 0.01)


async def run(path: Path | None, rng: random.Random, events: int) -> Tally:
    record, tally = Record(), Tally()
    store = await Store.open(path)
    writing = True

    def end() -> int:
        return 0 if writing else store.revision

    async with asyncio.TaskGroup() as group:
        for number in range(WATCHERS):
            slowness = (0, 0.001, 0.01, 0.05)[number % 4]
            group.create_task(follow(store, random.Random(rng.random()), record, tally, slowness, end))
        group.create_task(compact(store, random.Random(rng.random()), record, tally, lambda: not writing))
        await write(store, rng, record, events)
        writing = False
    if not await store.matches_disk():
        raise Broken("memory and disk differ")
    await store.close()
    return tally


def prove(path: Path | None, rng: random.Random, events: int) -> Tally:
    try:
        return asyncio.run(run(path, rng, events))
    except* Broken as broken:
        raise broken.exceptions[0] from None


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_window, "MAX_WINDOW_EVENTS", 40)
    monkeypatch.setattr(sqlite_journal, "EVENTS_PER_READ", 7)
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_CHECKPOINT", 100)


@pytest.mark.parametrize("where", ["disk", "memory"])
def test_no_event_is_lost_duplicated_or_reordered(
    memory_path: Path, rng: random.Random, size: Callable[..., int], where: str
) -> None:
    events, tally = size(20_000, test=500), Tally()
    for turn in range(MOST_TURNS):  # Gone and disk reads happen by chance: repeat until they did
        tally += prove(memory_path / f"{turn}.db" if where == "disk" else None, rng, events)
        is_enough = tally.delivered > events and tally.resumed > WATCHERS and tally.gone > 0
        if is_enough and (where == "memory" or tally.from_disk > 0):
            break
    else:
        pytest.fail(f"too little happened for a proof: {tally}")
    print(f"{where}: {events} events, {WATCHERS} watchers, {tally}")


def skip_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    after = BucketEventLog.list_events_after
    monkeypatch.setattr(
        BucketEventLog, "list_events_after", lambda log, since: [e for e in after(log, since) if e.revision % 97]
    )


def double_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    after = BucketEventLog.list_events_after
    monkeypatch.setattr(
        BucketEventLog, "list_events_after", lambda log, since: after(log, since - 1 if since % 97 == 0 else since)
    )


def swap_events(monkeypatch: pytest.MonkeyPatch) -> None:
    after = BucketEventLog.list_events_after
    monkeypatch.setattr(
        BucketEventLog, "list_events_after", lambda log, since: sorted(after(log, since), key=lambda event: event.name)
    )


def compact_one_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    step = history_table.compact_step

    def greedy(connection: object, low: int, high: int) -> None:
        step(connection, low, high + 1)  # type: ignore[arg-type]
        for name, value in (("compacted", high), ("compacted_sum", compute_compacted_checksum(high))):
            connection.execute("UPDATE meta SET value = ? WHERE name = ?", (value, name))  # type: ignore[attr-defined]

    monkeypatch.setattr(history_table, "compact_step", greedy)


def compact_without_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Store.watch

    def lenient(store: Store, bucket: str, *, since: int) -> BucketWatch:
        return watch(store, bucket, since=max(since, store.compacted))

    monkeypatch.setattr(Store, "watch", lenient)


def read_disk_one_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    async def careless(watch: BucketWatch) -> list[StoreEvent]:
        upto = watch._event_log.floor
        batch = await watch._journal.list_events(watch._bucket, watch._position, upto)
        watch._position = upto
        return batch

    monkeypatch.setattr(BucketWatch, "_read_from_disk", careless)


@pytest.mark.parametrize(
    "seed_bug",
    [
        skip_an_event, double_an_event, swap_events, compact_one_too_many, compact_without_saying_so,
        read_disk_one_too_far,
    ],
)  # fmt: skip
def test_proof_detects_seeded_watch_bugs(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None]
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(Broken):
        for turn in range(MOST_TURNS):  # a single round may miss the bug by chance, not all of them
            prove(memory_path / f"{turn}.db", rng, 2_000)
