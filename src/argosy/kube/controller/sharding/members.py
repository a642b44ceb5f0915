"""Membership of a sharded controller: each replica (member) holds a Lease and knows which keys it owns.

In: a cluster, a namespace. Out: for a key, whether a step on it may start here. Never: lets two members work on one key
at once, regardless of clocks, networks and suspended processes; compares the clocks of two machines.

Each Lease contains a roster: the members that its holder takes into account. The holder owns the keys that rendezvous
hashing over the roster assigns to it. These rules keep two members apart:

1. A roster is written only when no step is running here on a key that it gives away.
2. Work on a new key starts after all Leases were read since the roster was written, and no living member claims the
   key. So of two members that claim it at once, the one that wrote last sees the other.
3. A member whose Lease is unchanged for the whole lease duration is dead once its Lease is deleted in exactly that
   version: a later renewal is refused, and the process joins as a new member without keys.
4. No write starts here shortly before our Lease expires, and none continues after it: see `FencedStep`.
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
BREATH: Final = 0.05  # minimum seconds between two rounds
ATTEMPTS: Final = 4  # to delete our Lease when leaving
AGAIN: Final = Backoff(first=0.2, most=1.0, jitter=0.5)


class Standing(enum.Enum):
    OURS = "ours"
    LATER = "later"  # ours, but our Lease is not valid now
    ELSEWHERE = "elsewhere"


class Lost(Exception):
    """Our Lease was deleted or replaced: this member owns no keys any more."""


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
        self.on_change: Callable[[], None] = lambda: None  # the owned keys may have changed
        self.may_grow: Callable[[], bool] = lambda: True  # False: new members wait for their keys
        self.before_joining: Callable[[], Awaitable[None]] = _nothing  # raises if joining is not allowed
        self._cluster, self._namespace, self._terms, self._clock = cluster, namespace, terms, clock
        self._steps: set[Step] = set()
        self._woken = asyncio.Event()
        self._may_be_there = False
        self._wanted_at: float | None = None  # since when this process should hold a Lease; None: it should not
        self._forget()

    def _forget(self) -> None:
        """Reset to the state of a new member, which owns no keys."""
        self._lease: Manifest | None = None
        self._renewed_at = self._looked_at = -1e12
        self._version = ""  # resourceVersion of the last list, to watch from
        self._possible: list[Roster] = [NOBODY]  # rosters that our Lease may contain: the last, and unanswered writes
        self._established = NOBODY  # the roster in our Lease when the other Leases were read after its write
        self._intended = NOBODY
        self._others: dict[str, Seen] = {}
        self._heard: dict[str, tuple[str, float]] = {}  # last watched resourceVersion by Lease, and its time

    # -- ownership

    @property
    def roster(self) -> Roster:
        """The confirmed members."""
        return self._established

    def is_valid(self) -> bool:
        """True if a call that starts now has enough time before our Lease expires, even without another renewal."""
        return self._ends() - self._terms.request > self._clock.monotonic()

    def _ends(self) -> float:
        return self._renewed_at + self._terms.lease

    def overdue(self) -> float:
        """Return the seconds since our Lease expired; 0 while it is valid or not created yet."""
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
        """Begin a step on a key. If the key is ours, all writes of the step are fenced by our Lease."""
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

    # -- joining and leaving

    async def keep(self) -> None:
        """Join, renew and watch other members until cancelled. The caller then calls `leave`."""
        while True:
            self._wanted_at = self._clock.monotonic()
            await self._announce()
            watching = asyncio.create_task(self._watch())
            try:
                await self.before_joining()
                await self._rounds()
            except Lost as error:
                log.warning("membership lost, joining again: member=%s error=%s", self.identity, error)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
            await self._renounce()

    async def leave(self) -> None:
        """Delete our Lease, so that other members take over at once. If that fails, the Lease expires."""
        self._wanted_at = None
        await self._renounce()
        for attempt in range(1, ATTEMPTS + 1) if self._may_be_there else ():
            try:
                return await self._asked(self._cluster.delete(lease_key(self._namespace, self.identity)))
            except (ArgosyError, TimeoutError) as error:
                if isinstance(error, ClusterError) and error.code == 404:
                    return
                log.info("cannot delete own Lease: member=%s error=%s", self.identity, str(error) or "timeout")
                await sleep(self._clock, AGAIN.delay(attempt))

    async def _renounce(self) -> None:
        """Give up all keys, and return when no write is running."""
        for step in tuple(self._steps):
            step.take_away()  # before the expiry of our Lease is reset
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
                log.info("cannot create own Lease: member=%s error=%s", self.identity, str(error) or "timeout")
                if isinstance(error, Conflict):  # created before, but the answer was lost
                    await self._take_up()
                await sleep(self._clock, AGAIN.delay(failures))
        log.info("joined: member=%s namespace=%s", self.identity, self._namespace)

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
                log.log(loudness(error, logging.INFO), "cannot renew own Lease: member=%s error=%s", self.identity, why)
            if self._picture() != before:
                self.on_change()
            await sleep(self._clock, BREATH)
            with contextlib.suppress(TimeoutError):
                await within(self._clock, pause, self._woken.wait())

    def _picture(self) -> object:
        claims = frozenset((each.identity, each.roster) for each in self._others.values())
        return self._established, self._intended, tuple(self._possible), claims, self.is_valid()

    def _pause(self) -> float:
        """Return the seconds until the next renewal, or until another member's Lease expires."""
        if [self._established, *self._possible] != [self._next_roster()] * 2:
            return 0.0
        is_small = self._intended and not self._intended.issuperset(self._others)
        if is_small and self._is_settled and self.may_grow():
            return 0.0
        due = [self._renewed_at + self._terms.renew, *(each.since + each.lasts for each in self._others.values())]
        return max(0.0, min(due) - self._clock.monotonic())

    # -- our own Lease

    def _may_write(self, roster: Roster) -> bool:
        """True if no step is running on a key that this roster gives away."""
        return all(step.is_quiet or owner(roster, step.key) == self.identity for step in self._steps)

    def _next_roster(self) -> Roster:
        """Return the target roster; while that would give away running keys, the current one without dead members.

        Removing members gives no key away, because of rendezvous hashing.
        """
        return self._intended if self._may_write(self._intended) else self._possible[-1] & self._intended

    async def _renew(self) -> None:
        assert self._lease is not None
        roster = self._next_roster()
        if roster != self._possible[-1]:
            self._possible = [*self._possible, roster]  # from here on it may be stored, even if the call fails
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
        """Adopt the stored Lease after a conflict: another client changed it, or our own write got no answer."""
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

    # -- other members

    async def _look(self) -> None:
        """List all Leases, remove dead members, and choose the target roster."""
        began, was_settled = self._clock.monotonic(), self._is_settled
        listing = await self._asked(self._cluster.list(LEASE, namespace=self._namespace, labels=LABELS))
        is_gap = began - self._looked_at > self._terms.lease / 2  # we did not look, so unchanged Leases prove nothing
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
        """Choose the target roster: remove members at once, but add new ones only after removals are settled."""
        there = frozenset({self.identity, *self._others})
        if self._intended:
            return there if was_settled and self.may_grow() else there & self._intended
        lately = self._clock.monotonic() - 2 * self._terms.renew  # a member that is silent for longer may be dead
        heard = (each.roster for each in self._others.values() if each.since > lately)
        return there if all(self.identity in roster for roster in heard if roster) else NOBODY

    def look_again(self) -> None:
        """Start a round now, because `can_grow` may have changed."""
        self._woken.set()

    async def _bury(self, other: Seen) -> None:
        """Delete the Lease of a dead member in exactly the observed version: a renewal in this moment keeps it."""
        key = lease_key(self._namespace, other.identity)
        try:
            await self._asked(self._cluster.delete(key, uid=other.uid, version=other.version))
            log.info("removed a dead member: member=%s removed=%s", self.identity, other.identity)
        except ClusterError as error:
            if error.code != 404:
                log.info("cannot remove member: member=%s removed=%s error=%s", self.identity, other.identity, error)
                return
        self._others.pop(other.identity, None)

    def _obey(self, roster: Roster) -> None:
        if roster == self._intended:
            return
        log.info("members changed: member=%s roster=%s", self.identity, ",".join(sorted(roster)))
        self._intended = roster
        if not self._may_write(roster):
            self._clock.call_later(self._terms.patience, self._take_away)

    def _take_away(self) -> None:
        """Revoke steps on keys that the target roster gives away, after their grace period."""
        for step in tuple(self._steps):
            if owner(self._intended, step.key) != self.identity:
                step.take_away()

    async def _watch(self) -> None:
        """Watch Leases: start a round when a member joins, leaves or changes its roster; record renewal times."""
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
                log.debug("cannot watch member Leases: member=%s error=%s", self.identity, error)
            await sleep(self._clock, AGAIN.most)


async def _nothing() -> None:
    pass
