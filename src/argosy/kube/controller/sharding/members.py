"""Processes that share work: each announces itself by a Lease, and knows what of the work is its own.

In: a cluster, a namespace. Out: for a key, whether a step on it may begin here. Never: lets two members be at work on
one key at once, whatever clocks, networks and sleeping processes do; compares another machine's clock with ours.

Each Lease names the members that its holder obeys, its roster: of the keys, those are its own that rendezvous hashing
over that roster gives it. What holds two apart:

1. A roster is written only when nothing is under way here on a key that it gives away.
2. A key that a roster brings is begun when all Leases were read after that roster was written, and none of a living
   member claims the key. So of two that claim it at once, the one that wrote last sees the other.
3. A member whose Lease stands still for its whole length is dead once its Lease is deleted in the version that stood
   still: whoever renews it later is refused, and is a new member that has nothing.
4. Nothing that changes something begins here shortly before our Lease ends, or goes on when it has: see `Step`.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, TypeVar

from argosy.errors import ArgosyError, ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.client.reachability import loudness
from argosy.kube.controller.clock import BOOT_CLOCK, Backoff, Clock, sleep, within
from argosy.kube.controller.sharding.leases import (
    LABELS,
    LEASE,
    NOBODY,
    Roster,
    Seen,
    SharedTerms,
    fresh_lease,
    lease_key,
    new_identity,
    read_lease,
    renewed,
    roster_of,
)
from argosy.kube.controller.sharding.rendezvous_hash import owner
from argosy.kube.controller.write_fence import Step, under
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)
T = TypeVar("T")
BREATH: Final = 0.05  # seconds between two rounds, however much happens
ATTEMPTS: Final = 4  # to say that we leave
AGAIN: Final = Backoff(first=0.2, most=1.0, jitter=0.5)


class Standing(enum.Enum):
    OURS = "ours"
    LATER = "later"  # ours, but our Lease is not renewed
    ELSEWHERE = "elsewhere"


class Lost(Exception):
    """Our Lease is another's or gone: whatever was ours is not any more."""


class Members:
    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        *,
        identity: str = "",
        terms: SharedTerms = SharedTerms(),  # noqa: B008 - frozen
        clock: Clock = BOOT_CLOCK,
    ) -> None:
        self.identity = identity or new_identity()
        self.on_change: Callable[[], None] = lambda: None  # other keys may be ours than before
        self.may_grow: Callable[[], bool] = lambda: True  # while not, who comes has to wait for its part
        self.before_joining: Callable[[], Awaitable[None]] = _nothing  # raises where nobody may join
        self._cluster, self._namespace, self._terms, self._clock = cluster, namespace, terms, clock
        self._steps: set[Step] = set()
        self._woken = asyncio.Event()
        self._may_be_there = False
        self._wanted_at: float | None = None  # since when we are to have a Lease
        self._forget()

    def _forget(self) -> None:
        """As one that has just come: nothing is ours."""
        self._lease: Manifest | None = None
        self._renewed_at = self._looked_at = -1e12
        self._version = ""  # of the last list, to watch from
        self._possible: list[Roster] = [NOBODY]  # what our Lease may say: the last of them, and what got no answer
        self._established = NOBODY  # what it said when the others were read after that
        self._intended = NOBODY
        self._others: dict[str, Seen] = {}
        self._heard: dict[str, tuple[str, float]] = {}  # of each Lease, the version that the watch told last, and when

    # -- what is ours

    @property
    def roster(self) -> Roster:
        """Who shares the work, as far as everything is settled."""
        return self._established

    def is_valid(self) -> bool:
        """Whether a call that begins now has its time before our Lease ends, even if that is never renewed again."""
        return self._ends() - self._terms.request > self._clock.monotonic()

    def _ends(self) -> float:
        return self._renewed_at + self._terms.lease

    def overdue(self) -> float:
        """For how many seconds our Lease has run out; 0 while it is valid, or is still to be made."""
        if self._wanted_at is None:
            return 0.0
        return max(0.0, self._clock.monotonic() - max(self._wanted_at, self._renewed_at) - self._terms.lease)

    def standing(self, key: str) -> Standing:
        rosters = {self._established, self._intended, *self._possible}
        if any(owner(roster, key) != self.identity for roster in rosters):
            return Standing.ELSEWHERE
        others = ((each.identity, each.roster) for each in self._others.values())
        if any(roster not in rosters and owner(roster, key) == identity for identity, roster in others):
            return Standing.ELSEWHERE
        return Standing.OURS if self.is_valid() else Standing.LATER

    @contextlib.contextmanager
    def step(self, key: str) -> Iterator[Standing]:
        """One step on a key: where it is ours, whatever it changes is under our Lease until it ends."""
        standing = self.standing(key)
        if standing is not Standing.OURS:
            yield standing
            return
        step = Step(key, self.is_valid, self._ends, self._terms.request, self._clock)
        step.on_quiet = self._quiet
        self._steps.add(step)
        try:
            with under(step):
                yield standing
        finally:
            step.end()
            self._quiet()

    def _quiet(self) -> None:
        self._steps = {step for step in self._steps if not step.is_quiet}
        if not self._is_settled:
            self._woken.set()

    @property
    def _is_settled(self) -> bool:
        return self._possible == [self._intended] == [self._established]

    # -- being there

    async def keep(self) -> None:
        """Until cancelled: join, renew, watch the others. Whoever ends this calls `leave`."""
        while True:
            self._wanted_at = self._clock.monotonic()
            await self._announce()
            watching = asyncio.create_task(self._watch())
            try:
                await self.before_joining()
                await self._rounds()
            except Lost as error:
                log.warning("%s: %s; its applications are others' now, and it joins anew", self.identity, error)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            await self._renounce()

    async def leave(self) -> None:
        """Let the others have everything at once. If that cannot be said, our Lease runs out by itself."""
        self._wanted_at = None
        await self._renounce()
        for attempt in range(1, ATTEMPTS + 1) if self._may_be_there else ():
            try:
                return await self._asked(self._cluster.delete(lease_key(self._namespace, self.identity)))
            except (ArgosyError, TimeoutError) as error:
                if isinstance(error, ClusterError) and error.code == 404:
                    return
                log.info("%s: its Lease is left to run out: %s", self.identity, str(error) or "no answer in time")
                await sleep(self._clock, AGAIN.delay(attempt))

    async def _renounce(self) -> None:
        """Nothing is ours from here on; returns when nothing is under way."""
        for step in tuple(self._steps):
            step.take_away()  # while it is known when our Lease ends
        self._forget()
        self.on_change()
        while any(not step.is_quiet for step in self._steps):
            await sleep(self._clock, BREATH)
        self._steps.clear()

    async def _announce(self) -> None:
        failures, self._may_be_there = 0, True
        while self._lease is None:
            try:
                began = self._clock.monotonic()
                fresh = fresh_lease(self._namespace, self.identity, self._terms.lease, self._clock.now())
                self._lease = await self._asked(self._cluster.create(fresh))
                self._renewed_at = began
            except (ArgosyError, TimeoutError) as error:
                failures += 1
                log.info("%s: not announced: %s", self.identity, str(error) or "no answer in time")
                if isinstance(error, Conflict):  # made before, and the answer was lost
                    await self._take_up()
                await sleep(self._clock, AGAIN.delay(failures))
        log.info("%s shares the work of namespace %s", self.identity, self._namespace)

    async def _take_up(self) -> None:
        with contextlib.suppress(ArgosyError, TimeoutError):
            self._lease = await self._own()
            self._possible = [roster_of(self._lease)] if self._lease else [NOBODY]

    async def _rounds(self) -> None:
        failures = 0
        while True:
            self._woken.clear()
            before = self._picture()
            try:
                await self._renew()
                await self._look()
                failures, pause = 0, self._pause()
            except (ArgosyError, TimeoutError) as error:
                failures += 1
                pause = AGAIN.delay(failures)
                why = str(error) or "no answer in time"
                log.log(loudness(error, logging.INFO), "%s: not renewed: %s", self.identity, why)
            if self._picture() != before:
                self.on_change()
            await sleep(self._clock, BREATH)
            with contextlib.suppress(TimeoutError):
                await within(self._clock, pause, self._woken.wait())

    def _picture(self) -> object:
        claims = frozenset((each.identity, each.roster) for each in self._others.values())
        return self._established, self._intended, tuple(self._possible), claims, self.is_valid()

    def _pause(self) -> float:
        """Until the next renewal, or until another is dead."""
        if [self._established, *self._possible] != [self._next_roster()] * 2:
            return 0.0
        is_small = self._intended and not self._intended.issuperset(self._others)
        if is_small and self._is_settled and self.may_grow():
            return 0.0
        due = [self._renewed_at + self._terms.renew, *(each.since + each.lasts for each in self._others.values())]
        return max(0.0, min(due) - self._clock.monotonic())

    # -- our own Lease

    def _may_write(self, roster: Roster) -> bool:
        """Nothing is under way on what it gives away."""
        return all(step.is_quiet or owner(roster, step.key) == self.identity for step in self._steps)

    def _next_roster(self) -> Roster:
        """Whom to obey, or as long as that would give away what is under way, only without those who are gone.

        That gives nothing away, by the way in which keys are spread.
        """
        return self._intended if self._may_write(self._intended) else self._possible[-1] & self._intended

    async def _renew(self) -> None:
        assert self._lease is not None
        roster = self._next_roster()
        if roster != self._possible[-1]:
            self._possible = [*self._possible, roster]  # from here on it may be written, whatever we hear of it
        began = self._clock.monotonic()
        try:
            written = await self._asked(self._cluster.replace(renewed(self._lease, roster, self._clock.now())))
        except Conflict:
            return await self._find_again()
        except ClusterError as error:
            if error.code == 404:
                raise Lost("its Lease is gone") from error
            raise
        self._lease, self._possible, self._renewed_at = written, [roster], began

    @property
    def _uid(self) -> str:
        return str((self._lease or {"metadata": {}})["metadata"].get("uid") or "")

    async def _find_again(self) -> None:
        """Written by another, if only a label, or by ourselves, without an answer: what it says counts."""
        live = await self._own()
        if live is None or live["metadata"].get("uid") != self._uid:
            raise Lost("its Lease is gone")
        self._lease, self._possible = live, [roster_of(live)]
        for step in tuple(self._steps):
            if owner(self._possible[0], step.key) != self.identity:
                step.take_away()
        await self._renew_found()

    async def _renew_found(self) -> None:
        assert self._lease is not None
        began = self._clock.monotonic()
        again = renewed(self._lease, self._possible[0], self._clock.now())
        self._lease, self._renewed_at = await self._asked(self._cluster.replace(again)), began

    async def _own(self) -> Manifest | None:
        return await self._asked(self._cluster.get(lease_key(self._namespace, self.identity)))

    async def _asked(self, call: Awaitable[T]) -> T:
        return await within(self._clock, self._terms.request, call)

    # -- the others

    async def _look(self) -> None:
        """Read all Leases, bury the dead, and find out whom to obey."""
        began, was_settled = self._clock.monotonic(), self._is_settled
        listing = await self._asked(self._cluster.list(LEASE, namespace=self._namespace, labels=LABELS))
        is_gap = began - self._looked_at > self._terms.lease / 2  # nobody was seen: nobody is blamed for it
        now, heard = self._clock.monotonic(), {} if is_gap else self._heard
        seen = [read_lease(each, now, self._terms.lease, heard) for each in listing.items]
        if not any(each.identity == self.identity and each.uid == self._uid for each in seen):
            raise Lost("its Lease is gone")
        self._others = {
            each.identity: known
            if (known := self._others.get(each.identity)) and known.is_same(each) and not is_gap
            else each
            for each in seen
            if each.identity != self.identity
        }
        self._looked_at, self._version = began, listing.version
        if len(self._possible) == 1:
            self._established = self._possible[0]
        for other in tuple(self._others.values()):
            if began >= other.since + other.lasts and self.is_valid():
                await self._bury(other)
        self._obey(self._whom_to_obey(was_settled=was_settled))

    def _whom_to_obey(self, *, was_settled: bool) -> Roster:
        """What somebody left comes first: who comes has its part when that is taken, and claims nothing before."""
        there = frozenset({self.identity, *self._others})
        if self._intended:
            return there if was_settled and self.may_grow() else there & self._intended
        lately = self._clock.monotonic() - 2 * self._terms.renew  # who is silent for longer may be dead
        heard = (each.roster for each in self._others.values() if each.since > lately)
        return there if all(self.identity in roster for roster in heard if roster) else NOBODY

    def look_again(self) -> None:
        """Who had to wait may have its part now."""
        self._woken.set()

    async def _bury(self, other: Seen) -> None:
        """Dead only once its Lease is gone as it stood still: one that it renews in this moment stays."""
        key = lease_key(self._namespace, other.identity)
        try:
            await self._asked(self._cluster.delete(key, uid=other.uid, version=other.version))
            log.info("%s: %s is dead", self.identity, other.identity)
        except ClusterError as error:
            if error.code != 404:
                log.info("%s: %s is not taken for dead: %s", self.identity, other.identity, error)
                return
        self._others.pop(other.identity, None)

    def _obey(self, roster: Roster) -> None:
        if roster == self._intended:
            return
        log.info("%s: the work is shared by %s", self.identity, ", ".join(sorted(roster)))
        self._intended = roster
        if not self._may_write(roster):
            self._clock.call_later(self._terms.patience, self._take_away)

    def _take_away(self) -> None:
        """What is not ours by the roster to be has had its time."""
        for step in tuple(self._steps):
            if owner(self._intended, step.key) != self.identity:
                step.take_away()

    async def _watch(self) -> None:
        """Who comes, goes or lets go is looked at at once; of renewals it is noted when they were."""
        rosters: dict[str, Roster] = {}
        while True:
            if not self._version:
                await sleep(self._clock, BREATH)
                continue
            try:
                found = self._cluster.watch(LEASE, since=self._version, namespace=self._namespace, labels=LABELS)
                async for event in found:
                    if event.type == "BOOKMARK":
                        continue
                    metadata, roster = event.manifest["metadata"], roster_of(event.manifest)
                    name = metadata.get("name") or ""
                    if event.type == "DELETED" or rosters.get(name) != roster:
                        self._woken.set()
                    if event.type == "DELETED":
                        self._heard.pop(name, None), rosters.pop(name, None)
                        continue
                    self._heard[name] = str(metadata.get("resourceVersion") or ""), self._clock.monotonic()
                    rosters[name] = roster
            except ArgosyError as error:
                log.debug("%s: the Leases are not watched: %s", self.identity, error)
            await sleep(self._clock, AGAIN.most)


async def _nothing() -> None:
    pass
