"""A deterministic simulation of sharding members: the test moves the clock; the network delays and loses requests.

In: a seed. Out: the changes of each member with their times. Never: behaviour that the seed does not determine.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from argosy.errors import ArgosyError, ClusterError, Conflict, TransientError
from argosy.kube.client import Listing, WatchEvent
from argosy.kube.client.before_write_hook import BEFORE_WRITE
from argosy.kube.controller.sharding.membership import KeyOwnership, ShardMembership
from argosy.kube.controller.write_fence import run_write
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

KEYS = [f"argocd/app-{number}" for number in range(6)]
TURNS = 14  # event loop iterations until every task waits again


class Change(NamedTuple):
    """A change of a key by a member, with the times when it was sent and when it was executed."""

    key: str
    member: str
    step: int
    sent: float
    done: float


class World:
    def __init__(self, seed: int, longest: float = 4.0) -> None:
        """`longest`: seconds that a change can take. After 4 seconds it is dropped if its sender stopped waiting."""
        self.rng, self.time, self.longest = random.Random(seed), 0.0, longest
        self._order, self._coming = itertools.count(1), list[tuple[float, int, Callable[[], None]]]()
        self._before, self.processes = asyncio.all_tasks(), list[Process]()
        random.seed(seed)  # determines backoffs
        self.leases: dict[str, Manifest] = {}
        self.version = 0
        self.changes: list[Change] = []
        self.is_away = False
        self.trouble = 0.0  # share of requests that are lost or delayed

    def at(self, seconds: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._coming, (self.time + max(0.0, seconds), next(self._order), happens))

    async def pass_time(self, seconds: float) -> None:
        until = self.time + seconds
        while self._coming and self._coming[0][0] <= until:
            self.time, _, happens = heapq.heappop(self._coming)
            happens()
            await self._settle()
        self.time = until
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(TURNS):
            await asyncio.sleep(0)

    async def end(self) -> None:
        """Cancel all tasks that were started in this world."""
        while waiting := asyncio.all_tasks() - self._before:
            for task in waiting:
                task.cancel()
            await asyncio.sleep(0)

    # -- the API server: each call is atomic

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    def create(self, lease: Manifest) -> Manifest:
        name = lease["metadata"]["name"]
        if name in self.leases:
            raise Conflict("it is there", reason="AlreadyExists")
        version = self.next_version()
        stored = {**lease, "metadata": {**lease["metadata"], "uid": f"uid-{version}", "resourceVersion": version}}
        self.leases[name] = stored
        return stored

    def replace(self, lease: Manifest) -> Manifest:
        metadata = lease["metadata"]
        current = self.leases.get(metadata["name"])
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            raise ClusterError("not found", code=404)
        if current["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
            raise Conflict("it has changed")
        stored = {**lease, "metadata": {**metadata, "resourceVersion": self.next_version()}}
        self.leases[metadata["name"]] = stored
        return stored

    def delete(self, key: ResourceKey, uid: str | None, version: str | None) -> None:
        current = self.leases.get(key.name)
        if current is None:
            raise ClusterError("not found", code=404)
        metadata = current["metadata"]
        if (uid or metadata["uid"], version or metadata["resourceVersion"]) != (
            metadata["uid"], metadata["resourceVersion"],
        ):  # fmt: skip
            raise Conflict("it has changed")
        del self.leases[key.name]
        self.next_version()


class Timer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback, self.is_over = callback, False

    def cancel(self) -> None:
        self.is_over = True


@dataclass
class Process:
    """One member with its clock and connection. While it is paused, timers and responses wait until it resumes."""

    world: World
    name: str
    kind: type[ShardMembership] = ShardMembership
    is_asleep: bool = False
    is_dead: bool = False
    jump: timedelta = timedelta()
    _late: list[Callable[[], None]] = field(default_factory=list)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _steps: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.world.processes.append(self)
        self.members = self.kind(self, "argocd", identity=self.name, clock=self)  # type: ignore[arg-type]

    def begin(self) -> None:
        self._tasks = [asyncio.create_task(self.members.run()), asyncio.create_task(self._works())]

    # -- a clock

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.world.time) + self.jump

    def monotonic(self) -> float:
        return self.world.time

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(callback)
        self.world.at(seconds, lambda: self._reach(lambda: None if timer.is_over else timer.callback()))
        return timer

    def _reach(self, action: Callable[[], None]) -> None:
        if self.is_dead:
            return
        if self.is_asleep:
            self._late.append(action)
        else:
            action()

    def wake(self) -> None:
        self.is_asleep = False
        late, self._late = self._late, []
        self.world.rng.shuffle(late)
        for callback in late:
            callback()

    def kill(self) -> None:
        """Stop all responses to this member; its pending requests stay open until the world ends."""
        self.is_dead = True

    async def stop(self) -> None:
        ending = asyncio.create_task(self._stopped())
        while not ending.done():
            await self.world.pass_time(0.1)
        ending.result()

    async def _stopped(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.members.leave()
        self.is_dead = True

    # -- connection to the API server

    async def _asked(self, does: Callable[[], Any], *, most: float = 25.0) -> Any:
        """Send a request. It is executed even if its sender stopped waiting, unless it is lost."""
        world, rng = self.world, self.world.rng
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        is_bad = rng.random() < world.trouble
        there = rng.random() * (most if is_bad and rng.random() < 0.5 else 0.05)
        is_lost, is_unheard = is_bad and rng.random() < 0.3, is_bad and rng.random() < 0.3

        def answer(error: ArgosyError | None, result: Any) -> None:
            if answered.done():
                return
            if error is not None:
                answered.set_exception(error)
            else:
                answered.set_result(result)

        def happens() -> None:
            error: ArgosyError | None = None
            result = None
            if world.is_away or is_lost:
                error = TransientError("no route")
            else:
                try:
                    result = does()
                except ArgosyError as refused:
                    error = refused
                if is_unheard:
                    error = TransientError("connection reset")
            world.at(rng.random() * (2.0 if is_bad else 0.05), lambda: self._reach(lambda: answer(error, result)))

        world.at(there, happens)
        return await answered

    async def create(self, lease: Manifest) -> Manifest:
        return dict(await self._asked(lambda: self.world.create(lease)))

    async def replace(self, lease: Manifest) -> Manifest:
        return dict(await self._asked(lambda: self.world.replace(lease)))

    async def get(self, key: ResourceKey) -> Manifest | None:
        lease: Manifest | None = await self._asked(lambda: self.world.leases.get(key.name))
        return lease

    async def delete(self, key: ResourceKey, *, uid: str | None = None, version: str | None = None) -> None:
        await self._asked(lambda: self.world.delete(key, uid, version))

    async def list(self, kind: Any, **selectors: Any) -> Listing:
        listing: Listing = await self._asked(lambda: Listing([*self.world.leases.values()], str(self.world.version)))
        return listing

    async def watch(self, kind: Any, **selectors: Any) -> AsyncIterator[WatchEvent]:
        """Report changed Leases in intervals, like a slow watch."""
        previous = dict(self.world.leases)
        while True:
            slept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.call_later(0.2 + self.world.rng.random(), lambda: slept.done() or slept.set_result(None))  # noqa: B023
            await slept
            now = dict(self.world.leases)
            for name in previous.keys() | now.keys():
                if name not in now:
                    yield WatchEvent("DELETED", previous[name])
                elif now[name] is not previous.get(name):
                    yield WatchEvent("MODIFIED", now[name])
            previous = now

    # -- work on keys

    async def _works(self) -> None:
        rng = self.world.rng
        while True:
            ours = [key for key in KEYS if self.members.find_ownership(key) is KeyOwnership.OURS]
            key = rng.choice(ours or KEYS)
            with contextlib.suppress(ArgosyError), self.members.begin_step(key) as standing:
                if standing is KeyOwnership.OURS:
                    step = next(self._steps)
                    for _ in range(rng.randint(1, 4)):
                        await self._pause(rng.random() * 1.5)
                        await run_write(lambda: self._change(key, step), "change")  # noqa: B023
            await self._pause(rng.random() * 0.2)

    async def _pause(self, seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call_later(seconds, lambda: None if over.done() else over.set_result(None))
        await over

    async def _change(self, key: str, step: int) -> None:
        """Connect first, which can take a while; then run the fencing check and send the change."""
        began = self.world.time
        await self._pause(max(0.0, self.world.rng.random() - 0.7))
        BEFORE_WRITE.get()()
        sent_at, is_waiting = self.world.time, True
        time_left = max(0.0, began + self.world.longest - sent_at) * 0.99

        def does() -> None:
            is_soon = self.world.time < began + 4.0
            if is_soon or (is_waiting and not self.is_asleep and not self.is_dead):
                self.world.changes.append(Change(key, self.name, step, sent_at, self.world.time))

        try:
            if not self.world.is_away:
                await self._asked(does, most=time_left)
        finally:
            is_waiting = False


def faults(changes: list[Change]) -> list[str]:
    """Return the cases where steps of two members overlapped on one key. A step lasts from the sending of its first
    change to the execution of its last change."""
    by_key: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_key[change.key].append(change)
    overlaps = []
    for key, all_ in by_key.items():
        spans: dict[tuple[str, int], tuple[float, float]] = {}
        for change in all_:
            first, last = spans.get((change.member, change.step), (change.sent, change.done))
            spans[change.member, change.step] = min(first, change.sent), max(last, change.done)
        ordered = sorted((first, last, member) for (member, _), (first, last) in spans.items())
        latest: tuple[float, str] = (-1.0, "")
        for first, last, member in ordered:
            if first < latest[0] and member != latest[1]:
                overlaps.append(f"{key}: {member} from {first:.2f}, while {latest[1]} was until {latest[0]:.2f}")
            latest = max(latest, (last, member))
    return overlaps
