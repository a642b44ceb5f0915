"""Randomized shard membership with sleeps, crashes, joins and faults: no key is ever worked on by two members."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from argosy.kube.controller.sharding.member_lease_format import EMPTY_ROSTER, ObservedLease, Roster, ShardingConfig
from argosy.kube.controller.sharding.membership import KeyOwnership, ShardMembership
from support.proof_scale import is_full
from support.shard_members import KEYS, Process, World, faults
from support.tiers import IN_TEST_ALL_AND_PROVE

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
LONG = 30.0  # seconds that a webhook may take
SECONDS = 90.0  # duration of a simulated world
WORLDS = 20 if is_full() else 2
ALL = ("sleep", "sleep", "sleep", "wake", "kill", "stop", "come", "away", "back", "jump")
# Rare moments: a member wakes just as the others take it for dead; all members start at once.
NAPS, STARTS = ("nap",), ("anew",)


async def lived(
    seed: int, kind: type[ShardMembership] = ShardMembership, events: Sequence[str] = ALL, longest: float = 4.0
) -> World:
    world = World(seed, longest)
    world.trouble = world.rng.choice([0.0, 0.05, 0.2, 0.4]) if events is ALL else 0.0
    living = [Process(world, f"m{number}", kind) for number in range(3)]
    for process in living:
        process.begin()
    names = iter(range(3, 1000))
    try:
        while world.time < SECONDS:
            await world.pass_time(world.rng.random() * 8.0)
            await happening(world, living, kind, names, world.rng.choice(events))
        for process in living:
            process.wake()
        world.is_away, world.trouble = False, 0.0
        await world.pass_time(40.0)
        is_whole = all(settled(world, living))
        assert is_whole or kind is not ShardMembership, f"seed {seed}: not all keys have an owner at the end"
    finally:
        await world.end()
    return world


async def happening(
    world: World, living: list[Process], kind: type[ShardMembership], names: object, event: str
) -> None:
    one = world.rng.choice(living)
    if event == "nap" and not any(process.is_asleep for process in living):
        nap(world, living, one)
    elif event == "anew":
        for process in living:
            await process.stop()
        living[:] = [Process(world, f"m{next(names)}", kind) for _ in living]  # type: ignore[call-overload]
        for process in living:
            world.at(world.rng.random() * 0.2, process.begin)
    elif event == "sleep":
        one.is_asleep = True
        world.at(world.rng.random() * 30.0, one.wake)
    elif event == "wake":
        one.wake()
    elif event in ("kill", "stop") and len(living) > 1:
        living.remove(one)
        one.wake()
        if event == "stop":
            await one.stop()
        one.kill()
    elif event == "come" and len(living) < 5:
        living.append(Process(world, f"m{next(names)}", kind))  # type: ignore[call-overload]
        living[-1].begin()
    elif event == "away":
        world.is_away = True
        world.at(world.rng.random() * 25.0, lambda: setattr(world, "is_away", False))
    elif event == "back":
        world.is_away = False
    elif event == "jump":
        one.jump += timedelta(days=world.rng.choice([-1, 1]))


def nap(world: World, living: list[Process], one: Process) -> None:
    """Put a member to sleep until about the time when the first other member takes it for dead."""

    def aim() -> None:
        leases = (process.members._other_members.get(one.name) for process in living)
        moments = [lease.unchanged_since + lease.duration - world.time for lease in leases if lease is not None]
        world.at(min(moments, default=0.0) + world.rng.random() * 0.3, one.wake)

    one.is_asleep = True
    world.at(ShardingConfig().lease_duration / 2, aim)


def settled(world: World, living: list[Process]) -> list[bool]:
    """Return for each key whether exactly one living member owns it."""
    standings = ([process.members.find_ownership(key) for process in living] for key in KEYS)
    return [ownerships.count(KeyOwnership.OURS) == 1 for ownerships in standings]


@pytest.mark.parametrize("seed", range(WORLDS))
async def test_no_two_members_work_on_one_key_at_once(seed: int) -> None:
    world = await lived(seed)
    assert not faults(world.changes)
    assert len(world.changes) > 20


@pytest.mark.parametrize("seed", range(WORLDS // 2))
@pytest.mark.parametrize("events", [NAPS, STARTS], ids=["naps", "starts"])
async def test_no_two_members_work_on_one_key_in_rare_moments(seed: int, events: Sequence[str]) -> None:
    """A member wakes just as it is taken for dead, or all members start at once."""
    world = await lived(seed, events=events)
    assert not faults(world.changes)
    assert len(world.changes) > 20


@pytest.mark.parametrize("seed", range(WORLDS // 2))
async def test_no_two_members_work_on_one_key_with_writes_longer_than_a_lease(seed: int) -> None:
    world = await lived(seed, longest=LONG)
    assert not faults(world.changes)
    assert len(world.changes) > 20


# -- members that break one of the rules: each is detected


class NeverLooks(ShardMembership):
    """Rule 2: ignores the claims of other members."""

    def find_ownership(self, key: str) -> KeyOwnership:
        self._other_members, other_members = {}, self._other_members
        self._confirmed_roster, before = self._possible_rosters[0], self._confirmed_roster
        try:
            return super().find_ownership(key)
        finally:
            self._other_members, self._confirmed_roster = other_members, before


class TakesWithoutDeleting(ShardMembership):
    """Rule 3: takes over from a silent member without deleting its Lease."""

    async def _remove_dead_member(self, other: ObservedLease) -> None:
        self.gone = {*getattr(self, "gone", ()), other.identity}
        self._other_members.pop(other.identity, None)

    def _set_target_roster(self, roster: Roster) -> None:
        for identity in getattr(self, "gone", ()):
            self._other_members.pop(identity, None)
        super()._set_target_roster(roster - getattr(self, "gone", EMPTY_ROSTER))


class WritesTooSoon(ShardMembership):
    """Rule 1: gives up keys that it still works on."""

    def _can_write_roster(self, roster: Roster) -> bool:
        return True


class NeverExpires(ShardMembership):
    """Rule 4: its Lease never expires."""

    def is_valid(self) -> bool:
        return True


# `first` is the first seed that shows the fault, so that the test does not have to search for it.
@pytest.mark.parametrize(
    ("kind", "first", "events"),
    [
        pytest.param(NeverLooks, 5, STARTS, marks=IN_TEST_ALL_AND_PROVE),
        (TakesWithoutDeleting, 3, NAPS),
        (WritesTooSoon, 31, ALL),
        pytest.param(NeverExpires, 8, ALL, marks=IN_TEST_ALL_AND_PROVE),
    ],
)
async def test_members_that_break_a_rule_are_detected(
    kind: type[ShardMembership], first: int, events: Sequence[str]
) -> None:
    for seed in range(first, first + 200):
        world = await lived(seed, kind, events)
        if faults(world.changes):
            return
    pytest.fail(f"{kind.__doc__} In 200 worlds nobody noticed.")
