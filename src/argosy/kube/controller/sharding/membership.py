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
from argosy.kube.client.reachability_log import choose_log_level
from argosy.kube.controller.clock import BOOT_CLOCK, Clock, run_with_timeout, sleep
from argosy.kube.controller.sharding.lease_watch import MIN_ROUND_SECONDS, RETRY_BACKOFF, LeaseWatch
from argosy.kube.controller.sharding.member_lease_format import (
    EMPTY_ROSTER,
    MEMBER_SELECTOR,
    ObservedLease,
    Roster,
    ShardingConfig,
    build_lease,
    build_lease_key,
    build_member_identity,
    build_renewed_lease,
    read_lease,
    read_roster,
)
from argosy.kube.controller.sharding.rendezvous_hash import find_owner
from argosy.kube.controller.write_fence import FencedStep, require_permit
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import LEASE

log = logging.getLogger(__name__)
T = TypeVar("T")
MAX_LEAVE_ATTEMPTS: Final = 4  # to delete our Lease when leaving


class KeyOwnership(enum.Enum):
    OURS = "ours"
    LEASE_EXPIRED = "later"  # ours, but our Lease is not valid now
    OTHER_MEMBER = "elsewhere"


class MemberLeaseLost(Exception):
    """Our Lease was deleted or replaced: this member owns no keys any more."""


class ShardMembership:
    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        *,
        identity: str = "",
        config: ShardingConfig = ShardingConfig(),  # noqa: B008 - frozen
        clock: Clock = BOOT_CLOCK,
    ) -> None:
        self.identity = identity or build_member_identity()
        self.on_change: Callable[[], None] = lambda: None  # the owned keys may have changed
        self.can_grow: Callable[[], bool] = lambda: True  # False: new members wait for their keys
        self.check_before_joining: Callable[[], Awaitable[None]] = _do_nothing  # raises if joining is not allowed
        self._cluster, self._namespace, self._config, self._clock = cluster, namespace, config, clock
        self._steps: set[FencedStep] = set()
        self._wakeup = asyncio.Event()
        self._may_have_lease = False
        self._joining_since: float | None = None  # since when this process should hold a Lease; None: it should not
        self._reset()

    def _reset(self) -> None:
        """Reset to the state of a new member, which owns no keys."""
        self._lease: Manifest | None = None
        self._renewed_at = self._listed_at = -1e12
        # rosters that our Lease may contain: the last, and unanswered writes
        self._possible_rosters: list[Roster] = [EMPTY_ROSTER]
        self._confirmed_roster = EMPTY_ROSTER  # the roster in our Lease when the other Leases were read after its write
        self._target_roster = EMPTY_ROSTER
        self._other_members: dict[str, ObservedLease] = {}
        self._watch = LeaseWatch(self._cluster, self._namespace, self.identity, self._clock, self._wakeup)

    # -- ownership

    @property
    def roster(self) -> Roster:
        """The confirmed members."""
        return self._confirmed_roster

    def is_valid(self) -> bool:
        """True if a call that starts now has enough time before our Lease expires, even without another renewal."""
        return self._lease_ends_at() - self._config.request_margin > self._clock.monotonic()

    def _lease_ends_at(self) -> float:
        return self._renewed_at + self._config.lease_duration

    def seconds_since_expiry(self) -> float:
        """Return the seconds since our Lease expired; 0 while it is valid or not created yet."""
        if self._joining_since is None:
            return 0.0
        return max(
            0.0, self._clock.monotonic() - max(self._joining_since, self._renewed_at) - self._config.lease_duration
        )

    def find_ownership(self, key: str) -> KeyOwnership:
        rosters = {self._confirmed_roster, self._target_roster, *self._possible_rosters}
        if any(find_owner(roster, key) != self.identity for roster in rosters):
            return KeyOwnership.OTHER_MEMBER
        others = ((other.identity, other.roster) for other in self._other_members.values())
        if any(roster not in rosters and find_owner(roster, key) == identity for identity, roster in others):
            return KeyOwnership.OTHER_MEMBER
        return KeyOwnership.OURS if self.is_valid() else KeyOwnership.LEASE_EXPIRED

    @contextlib.contextmanager
    def begin_step(self, key: str) -> Iterator[KeyOwnership]:
        """Begin a step on a key. If the key is ours, all writes of the step are fenced by our Lease."""
        ownership = self.find_ownership(key)
        if ownership is not KeyOwnership.OURS:
            yield ownership
            return
        step = FencedStep(key, self.is_valid, self._lease_ends_at, self._config.request_margin, self._clock)
        step.on_finished = self._remove_finished_steps
        self._steps.add(step)
        try:
            with require_permit(step):
                yield ownership
        finally:
            step.close()
            self._remove_finished_steps()

    def _remove_finished_steps(self) -> None:
        self._steps = {step for step in self._steps if not step.is_finished}
        if not self._is_settled:
            self._wakeup.set()

    @property
    def _is_settled(self) -> bool:
        return self._possible_rosters == [self._target_roster] == [self._confirmed_roster]

    # -- joining and leaving

    async def run(self) -> None:
        """Join, renew and watch other members until cancelled. The caller then calls `leave`."""
        while True:
            self._joining_since = self._clock.monotonic()
            await self._create_lease()
            watch_task = asyncio.create_task(self._watch.run())
            try:
                await self.check_before_joining()
                await self._run_rounds()
            except MemberLeaseLost as error:
                log.warning("membership lost, joining again: member=%s error=%s", self.identity, error)
            finally:
                watch_task.cancel()
                await asyncio.gather(watch_task, return_exceptions=True)
            await self._give_up_all_keys()

    async def leave(self) -> None:
        """Delete our Lease, so that other members take over at once. If that fails, the Lease expires."""
        self._joining_since = None
        await self._give_up_all_keys()
        for attempt in range(1, MAX_LEAVE_ATTEMPTS + 1) if self._may_have_lease else ():
            try:
                return await self._call_with_timeout(
                    self._cluster.delete(build_lease_key(self._namespace, self.identity))
                )
            except (ArgosyError, TimeoutError) as error:
                if isinstance(error, ClusterError) and error.code == 404:
                    return
                log.info("cannot delete own Lease: member=%s error=%s", self.identity, str(error) or "timeout")
                await sleep(self._clock, RETRY_BACKOFF.delay(attempt))

    async def _give_up_all_keys(self) -> None:
        """Give up all keys, and return when no write is running."""
        for step in tuple(self._steps):
            step.revoke()  # before the expiry of our Lease is reset
        self._reset()
        self.on_change()
        while any(not step.is_finished for step in self._steps):
            await sleep(self._clock, MIN_ROUND_SECONDS)
        self._steps.clear()

    async def _create_lease(self) -> None:
        failures, self._may_have_lease = 0, True
        while self._lease is None:
            try:
                started_at = self._clock.monotonic()
                new_lease = build_lease(self._namespace, self.identity, self._config.lease_duration, self._clock.now())
                self._lease = await self._call_with_timeout(self._cluster.create(new_lease))
                self._renewed_at = started_at
            except (ArgosyError, TimeoutError) as error:
                failures += 1
                log.info("cannot create own Lease: member=%s error=%s", self.identity, str(error) or "timeout")
                if isinstance(error, Conflict):  # created before, but the answer was lost
                    await self._adopt_lease()
                await sleep(self._clock, RETRY_BACKOFF.delay(failures))
        log.info("joined: member=%s namespace=%s", self.identity, self._namespace)

    async def _adopt_lease(self) -> None:
        with contextlib.suppress(ArgosyError, TimeoutError):
            self._lease = await self._fetch_own_lease()
            self._possible_rosters = [read_roster(self._lease)] if self._lease else [EMPTY_ROSTER]

    async def _run_rounds(self) -> None:
        failures = 0
        while True:
            self._wakeup.clear()
            before = self._build_snapshot()
            try:
                await self._renew_lease()
                await self._observe_members()
                failures, seconds = 0, self._find_round_delay()
            except (ArgosyError, TimeoutError) as error:
                failures += 1
                seconds = RETRY_BACKOFF.delay(failures)
                reason = str(error) or "no answer in time"
                log.log(
                    choose_log_level(error, logging.INFO),
                    "cannot renew own Lease: member=%s error=%s",
                    self.identity,
                    reason,
                )
            if self._build_snapshot() != before:
                self.on_change()
            await sleep(self._clock, MIN_ROUND_SECONDS)
            with contextlib.suppress(TimeoutError):
                await run_with_timeout(self._clock, seconds, self._wakeup.wait())

    def _build_snapshot(self) -> object:
        claims = frozenset((other.identity, other.roster) for other in self._other_members.values())
        return self._confirmed_roster, self._target_roster, tuple(self._possible_rosters), claims, self.is_valid()

    def _find_round_delay(self) -> float:
        """Return the seconds until the next renewal, or until another member's Lease expires."""
        if [self._confirmed_roster, *self._possible_rosters] != [self._choose_next_roster()] * 2:
            return 0.0
        is_small = self._target_roster and not self._target_roster.issuperset(self._other_members)
        if is_small and self._is_settled and self.can_grow():
            return 0.0
        times = [
            self._renewed_at + self._config.renew_interval,
            *(other.unchanged_since + other.duration for other in self._other_members.values()),
        ]
        return max(0.0, min(times) - self._clock.monotonic())

    # -- our own Lease

    def _can_write_roster(self, roster: Roster) -> bool:
        """True if no step is running on a key that this roster gives away."""
        return all(step.is_finished or find_owner(roster, step.key) == self.identity for step in self._steps)

    def _choose_next_roster(self) -> Roster:
        """Return the target roster; while that would give away running keys, the current one without dead members.

        Removing members gives no key away, because of rendezvous hashing.
        """
        return (
            self._target_roster
            if self._can_write_roster(self._target_roster)
            else self._possible_rosters[-1] & self._target_roster
        )

    async def _renew_lease(self) -> None:
        assert self._lease is not None
        roster = self._choose_next_roster()
        if roster != self._possible_rosters[-1]:
            # from here on it may be stored, even if the call fails
            self._possible_rosters = [*self._possible_rosters, roster]
        started_at = self._clock.monotonic()
        try:
            written = await self._call_with_timeout(
                self._cluster.replace(build_renewed_lease(self._lease, roster, self._clock.now()))
            )
        except Conflict:
            return await self._recover_lease()
        except ClusterError as error:
            if error.code == 404:
                raise MemberLeaseLost("its Lease is gone") from error
            raise
        self._lease, self._possible_rosters, self._renewed_at = written, [roster], started_at

    @property
    def _lease_uid(self) -> str:
        return str((self._lease or {"metadata": {}})["metadata"].get("uid") or "")

    async def _recover_lease(self) -> None:
        """Adopt the stored Lease after a conflict: another client changed it, or our own write got no answer."""
        live = await self._fetch_own_lease()
        if live is None or live["metadata"].get("uid") != self._lease_uid:
            raise MemberLeaseLost("its Lease is gone")
        self._lease, self._possible_rosters = live, [read_roster(live)]
        for step in tuple(self._steps):
            if find_owner(self._possible_rosters[0], step.key) != self.identity:
                step.revoke()
        await self._renew_recovered_lease()

    async def _renew_recovered_lease(self) -> None:
        assert self._lease is not None
        started_at = self._clock.monotonic()
        renewed_lease = build_renewed_lease(self._lease, self._possible_rosters[0], self._clock.now())
        self._lease, self._renewed_at = await self._call_with_timeout(self._cluster.replace(renewed_lease)), started_at

    async def _fetch_own_lease(self) -> Manifest | None:
        return await self._call_with_timeout(self._cluster.get(build_lease_key(self._namespace, self.identity)))

    async def _call_with_timeout(self, call: Awaitable[T]) -> T:
        return await run_with_timeout(self._clock, self._config.request_margin, call)

    # -- other members

    async def _observe_members(self) -> None:
        """List all Leases, remove dead members, and choose the target roster."""
        started_at, was_settled = self._clock.monotonic(), self._is_settled
        listing = await self._call_with_timeout(
            self._cluster.list(LEASE, namespace=self._namespace, labels=MEMBER_SELECTOR)
        )
        # after a gap in which we did not look, unchanged Leases prove nothing
        is_gap = started_at - self._listed_at > self._config.lease_duration / 2
        now, observed_versions = self._clock.monotonic(), {} if is_gap else self._watch.versions
        leases = [read_lease(lease, now, self._config.lease_duration, observed_versions) for lease in listing.items]
        if not any(lease.identity == self.identity and lease.uid == self._lease_uid for lease in leases):
            raise MemberLeaseLost("its Lease is gone")
        self._other_members = {
            lease.identity: earlier
            if (earlier := self._other_members.get(lease.identity)) and earlier.is_same_version(lease) and not is_gap
            else lease
            for lease in leases
            if lease.identity != self.identity
        }
        self._listed_at, self._watch.since = started_at, listing.version
        if len(self._possible_rosters) == 1:
            self._confirmed_roster = self._possible_rosters[0]
        for other in tuple(self._other_members.values()):
            if started_at >= other.unchanged_since + other.duration and self.is_valid():
                await self._remove_dead_member(other)
        self._set_target_roster(self._choose_target_roster(was_settled=was_settled))

    def _choose_target_roster(self, *, was_settled: bool) -> Roster:
        """Choose the target roster: remove members at once, but add new ones only after removals are settled."""
        present = frozenset({self.identity, *self._other_members})
        if self._target_roster:
            return present if was_settled and self.can_grow() else present & self._target_roster
        # a member that is silent for longer may be dead
        recently = self._clock.monotonic() - 2 * self._config.renew_interval
        rosters = (other.roster for other in self._other_members.values() if other.unchanged_since > recently)
        return present if all(self.identity in roster for roster in rosters if roster) else EMPTY_ROSTER

    def wake(self) -> None:
        """Start a round now, because `can_grow` may have changed."""
        self._wakeup.set()

    async def _remove_dead_member(self, other: ObservedLease) -> None:
        """Delete the Lease of a dead member in exactly the observed version: a renewal in this moment keeps it."""
        key = build_lease_key(self._namespace, other.identity)
        try:
            await self._call_with_timeout(self._cluster.delete(key, uid=other.uid, version=other.version))
            log.info("removed a dead member: member=%s removed=%s", self.identity, other.identity)
        except ClusterError as error:
            if error.code != 404:
                log.info("cannot remove member: member=%s removed=%s error=%s", self.identity, other.identity, error)
                return
        self._other_members.pop(other.identity, None)

    def _set_target_roster(self, roster: Roster) -> None:
        if roster == self._target_roster:
            return
        log.info("members changed: member=%s roster=%s", self.identity, ",".join(sorted(roster)))
        self._target_roster = roster
        if not self._can_write_roster(roster):
            self._clock.call_later(self._config.handover_grace, self._revoke_moved_steps)

    def _revoke_moved_steps(self) -> None:
        """Revoke steps on keys that the target roster gives away, after their grace period."""
        for step in tuple(self._steps):
            if find_owner(self._target_roster, step.key) != self.identity:
                step.revoke()


async def _do_nothing() -> None:
    pass
