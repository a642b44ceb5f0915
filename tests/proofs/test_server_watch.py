"""Watches over HTTPS: every event once and in order, across disconnects, resumes and compaction; no wrong Gone.

Sixteen clients watch ConfigMaps, some of them with a selector, disconnect at random and resume from the last version
that they saw, while history is compacted behind them. The received events are compared with the store's events.
"""

from __future__ import annotations

import asyncio
import json
import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest

from argosy.errors import Gone
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.http import watch_stream
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.listing import SelectorMatcher
from argosy.sandbox.store import DELETED, Store, StoreEvent, event_window, sqlite_journal
from argosy.sandbox.store.watch import BucketWatch
from support.clusters import TOKEN, Served, configmap, served
from support.tiers import IN_TEST_ALL_AND_PROVE

pytestmark = pytest.mark.tier("test", "prove")

WATCHERS = 16
MOST_TURNS = 10
KEYS = 20
COLOURS = ("red", "blue")
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Broken(AssertionError):
    """A guarantee is violated."""


class Seen(NamedTuple):
    type: str
    name: str
    version: int


def colour(body: bytes | None) -> str:
    return json.loads(body)["metadata"]["labels"]["colour"] if body else ""


@dataclass
class Record:
    """All ConfigMap events that the store published, in order of revision."""

    events: list[StoreEvent] = field(default_factory=list)

    def listen(self, events: Any) -> None:
        ours = (event for event in events if event.bucket == "configmaps" and event.name.startswith("item-"))
        self.events.extend(ours)

    def expected(self, chosen: str, after: int, upto: int) -> list[Seen]:
        observed_events = (as_seen(event, chosen) for event in self.events[self._count(after) : self._count(upto)])
        return [observed_event for observed_event in observed_events if observed_event]

    def state(self, chosen: str, at: int) -> dict[str, int]:
        """Return the revision of each existing object at that revision, from the last event of its name."""
        last: dict[str, StoreEvent] = {}
        for index in range(self._count(at) - 1, -1, -1):
            last.setdefault(self.events[index].name, self.events[index])
            if len(last) == KEYS:
                break
        there = (event for event in last.values() if event.type is not DELETED)
        return {event.name: event.revision for event in there if not chosen or colour(event.body) == chosen}

    def _count(self, upto: int) -> int:
        return bisect_right(self.events, upto, key=lambda event: event.revision)


def as_seen(event: StoreEvent, chosen: str) -> Seen | None:
    """Translate an event for a watch that selects one colour: leaving it is DELETED, entering it ADDED."""
    if not chosen:
        return Seen(event.type.value, event.name, event.revision)
    before = colour(event.previous) == chosen
    after = event.type is not DELETED and colour(event.body) == chosen
    if not before and not after:
        return None
    return Seen("MODIFIED" if before and after else "ADDED" if after else "DELETED", event.name, event.revision)


@dataclass
class Tally:
    delivered: int = 0
    resumed: int = 0
    gone: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*map(add, astuple(self), astuple(other)))


class Follower:
    def __init__(self, server: Served, session: aiohttp.ClientSession, record: Record, tally: Tally, rng: random.Random,
                 chosen: str, absence: float, end: Callable[[], int]) -> None:  # fmt: skip
        self._server, self._session, self._record, self._tally = server, session, record, tally
        self._rng, self._chosen, self._absence, self._end = rng, chosen, absence, end
        self._selector = {"labelSelector": f"colour={chosen}"} if chosen else {"labelSelector": "colour"}
        self._position = 0

    async def follow(self) -> None:
        await self._relist()
        while not (self._end() and self._position >= self._end()):
            await self._connect()
            self._tally.resumed += 1
            await asyncio.sleep(self._rng.random() * self._absence)

    async def _connect(self) -> None:
        """Watch for a while, then drop the connection, sometimes in the middle of a line."""
        query = {**self._selector, "watch": "1", "resourceVersion": str(self._position), "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = "1"
        most = self._rng.choice((1, 5, 30, 200))
        async with self._session.get(self._server.endpoint.address + CONFIGMAPS, params=query) as answer:
            if answer.status != 200:
                raise Broken(f"a watch from {self._position} is answered {answer.status}: {await answer.text()}")
            async for line in answer.content:
                if not line.endswith(b"\n"):
                    break
                event = json.loads(line)
                if event["type"] == "ERROR":
                    await self._gone(event["object"])
                    return
                self._take(event)
                most -= 1
                if most <= 0 or (self._end() and self._position >= self._end()):
                    break
                if self._rng.random() < 0.02:
                    await asyncio.sleep(self._rng.random() * 0.05)
            else:
                self._quiet()

    def _take(self, event: dict[str, Any]) -> None:
        metadata = event["object"]["metadata"]
        version = int(metadata["resourceVersion"])
        expected = self._record.expected(self._chosen, self._position, version)
        actual = [] if event["type"] == "BOOKMARK" else [Seen(event["type"], metadata["name"], version)]
        if actual != expected:
            raise Broken(f"{self._chosen} after {self._position}: saw {actual or 'a bookmark'}, and not {expected}")
        self._tally.delivered += len(actual)
        self._position = version

    def _quiet(self) -> None:
        """The server ended the watch: once all writes are done, no event may be missing."""
        if end := self._end():
            left = self._record.expected(self._chosen, self._position, end)
            if not left:
                self._position = end

    async def _gone(self, status: dict[str, Any]) -> None:
        if status["code"] != 410 or status["reason"] != "Expired":
            raise Broken(f"a watch ended with {status}")
        if self._position >= self._server.plane.store.compacted:
            raise Broken(f"Gone from {self._position}, compacted is {self._server.plane.store.compacted}")
        self._tally.gone += 1
        await self._relist()

    async def _relist(self) -> None:
        address = self._server.endpoint.address + CONFIGMAPS
        async with self._session.get(address, params=self._selector) as answer:
            listed = await answer.json()
        version = int(listed["metadata"]["resourceVersion"])
        state = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in listed["items"]}
        if state != self._record.state(self._chosen, version):
            raise Broken(f"the list at {version} is not the state then")
        self._position = version


async def write(server: Served, rng: random.Random, events: int, record: Record) -> None:
    cluster = EmbeddedCluster(server.plane)
    there: set[str] = set()

    async def one(name: str) -> None:
        labels = {"colour": rng.choice(COLOURS)}
        manifest = configmap(name, {"turn": str(rng.random())}, namespace="default", labels=labels)
        if name not in there:
            await cluster.create(manifest)
            there.add(name)
        elif rng.random() < 0.25:
            there.discard(name)
            await cluster.delete(ResourceKey("", "ConfigMap", "default", name))
        else:
            await cluster.replace(manifest)

    while len(record.events) < events:
        names = rng.sample(range(KEYS), rng.randint(1, 8))
        await asyncio.gather(*(one(f"item-{number}") for number in names))
        await asyncio.sleep(rng.random() * 0.02)


async def compact(server: Served, session: aiohttp.ClientSession, rng: random.Random, done: Callable[[], bool]) -> None:
    """Compact continuously and probe the boundary: a watch works at it and gets Gone one revision below it."""
    store = server.plane.store
    while not done():
        retained = rng.choice((0, 20, 100, 100, 400))
        if store.revision - retained > store.compacted:
            await store.compact(rng.randint(store.compacted, store.revision - retained))
        for since in (store.compacted - 1, store.compacted):
            event = await first_line(server, session, since) if since > 0 else {}
            gone = event.get("type") == "ERROR" and event["object"]["code"] == 410
            if since > 0 and gone != (since < store.compacted):
                raise Broken(f"a watch from {since} is told {event}, compacted is {store.compacted}")
        await asyncio.sleep(rng.random() * 0.1)


async def first_line(server: Served, session: aiohttp.ClientSession, since: int) -> dict[str, Any]:
    query = {"watch": "1", "resourceVersion": str(since), "timeoutSeconds": "1"}
    async with session.get(server.endpoint.address + CONFIGMAPS, params=query) as answer:
        line = await answer.content.readline()
    return json.loads(line) if line else {}  # type: ignore[no-any-return]


async def run(folder: Path, rng: random.Random, events: int) -> Tally:
    record, tally, writing = Record(), Tally(), True
    async with served(folder, durable=True) as server:
        stop = server.plane.store.subscribe(record.listen)

        def end() -> int:
            return 0 if writing else record.events[-1].revision

        headers = {"Authorization": f"Bearer {TOKEN}"}
        connector = aiohttp.TCPConnector(ssl=server.endpoint.tls, limit=0)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session, asyncio.TaskGroup() as group:
            for number in range(WATCHERS):
                chosen, absence = ("", "red", "", "blue")[number % 4], (0.0, 0.01, 0.2, 0.8)[number // 4]
                follower_rng = random.Random(rng.random())
                group.create_task(Follower(server, session, record, tally, follower_rng, chosen, absence, end).follow())
            group.create_task(compact(server, session, random.Random(rng.random()), lambda: not writing))
            await write(server, rng, events, record)
            writing = False
        stop()
    return tally


def prove(folder: Path, rng: random.Random, events: int) -> Tally:
    try:
        return asyncio.run(run(folder, rng, events))
    except* Broken as broken:
        raise broken.exceptions[0] from None


@pytest.fixture(autouse=True)
def small_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the event window small, so that slow watchers read from disk and soon get Gone."""
    monkeypatch.setattr(event_window, "MAX_WINDOW_EVENTS", 40)
    monkeypatch.setattr(sqlite_journal, "EVENTS_PER_READ", 7)


def test_no_event_is_lost_duplicated_or_reordered_over_https(
    memory_path: Path, rng: random.Random, size: Callable[[int], int]
) -> None:
    events, tally = size(20_000), Tally()
    for turn in range(MOST_TURNS):  # a Gone happens by chance: repeat until one did
        tally += prove(memory_path / f"data-{turn}", rng, events)
        if tally.delivered > events and tally.resumed > WATCHERS * 2 and tally.gone > 0:
            break
    else:
        pytest.fail(f"too little happened for a proof: {tally}")
    print(f"{events} events, {WATCHERS} watchers, {tally}")


def skip_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = watch_stream._encode_matching_event
    monkeypatch.setattr(
        watch_stream,
        "_encode_matching_event",
        lambda event, *a, **k: line(event, *a, **k) if event.revision % 31 else None,
    )


def double_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line = watch_stream._encode_matching_event
    monkeypatch.setattr(
        watch_stream,
        "_encode_matching_event",
        lambda event, *a, **k: (line(event, *a, **k) or b"") * (1 if event.revision % 31 else 2),
    )


def forget_transitions(monkeypatch: pytest.MonkeyPatch) -> None:
    init = SelectorMatcher.__init__

    def careless(matcher: SelectorMatcher, *arguments: Any) -> None:
        init(matcher, *arguments)
        matcher.matches_all = True

    monkeypatch.setattr(SelectorMatcher, "__init__", careless)


def compact_without_saying_so(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Store.watch

    def lenient(store: Store, bucket: str, *, since: int) -> BucketWatch:
        return watch(store, bucket, since=max(since, store.compacted))

    monkeypatch.setattr(Store, "watch", lenient)


def say_gone_too_early(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Store.watch

    def strict(store: Store, bucket: str, *, since: int) -> BucketWatch:
        if bucket == "configmaps" and store.compacted < since < store.revision - 3:
            raise Gone("too old")
        return watch(store, bucket, since=since)

    monkeypatch.setattr(Store, "watch", strict)


@pytest.mark.parametrize(
    "seed_bug",
    [
        skip_a_line,
        pytest.param(double_a_line, marks=IN_TEST_ALL_AND_PROVE),
        pytest.param(forget_transitions, marks=IN_TEST_ALL_AND_PROVE),
        compact_without_saying_so,
        pytest.param(say_gone_too_early, marks=IN_TEST_ALL_AND_PROVE),
    ],
)
def test_proof_detects_seeded_watch_bugs(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, seed_bug: Callable[..., None]
) -> None:
    seed_bug(monkeypatch)
    with pytest.raises(Broken):
        prove(memory_path / "data", rng, 1_500)
