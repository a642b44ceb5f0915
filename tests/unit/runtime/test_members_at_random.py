"""Members that sleep, die, come and go in a world that loses and delays: never two at work on one key at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from member_world import KEYS, Process, World, faults

from argosy.runtime.member_leases import Roster
from argosy.runtime.members import Members, Standing

pytestmark = pytest.mark.anyio
SECONDS = 90.0  # that a world lasts
WORLDS = 20


async def lived(seed: int, kind: type[Members] = Members) -> World:
    world = World(seed)
    world.trouble = world.rng.choice([0.0, 0.05, 0.2, 0.4])
    living = [Process(world, f"m{number}", kind) for number in range(3)]
    for each in living:
        each.begin()
    names = iter(range(3, 1000))
    try:
        while world.time < SECONDS:
            await world.pass_time(world.rng.random() * 8.0)
            await happening(world, living, kind, names)
        for each in living:
            each.wake()
        world.is_away, world.trouble = False, 0.0
        await world.pass_time(40.0)
        assert all(settled(world, living)), f"seed {seed}: not all keys have an owner at the end"
    finally:
        await world.end()
    return world


async def happening(world: World, living: list[Process], kind: type[Members], names: object) -> None:
    what = world.rng.choice(["sleep", "sleep", "sleep", "wake", "kill", "stop", "come", "away", "back", "jump"])
    one = world.rng.choice(living)
    if what == "sleep":
        one.is_asleep = True
        world.at(world.rng.random() * 30.0, one.wake)
    elif what == "wake":
        one.wake()
    elif what in ("kill", "stop") and len(living) > 1:
        living.remove(one)
        one.wake()
        if what == "stop":
            await one.stop()
        one.kill()
    elif what == "come" and len(living) < 5:
        living.append(Process(world, f"m{next(names)}", kind))  # type: ignore[call-overload]
        living[-1].begin()
    elif what == "away":
        world.is_away = True
        world.at(world.rng.random() * 25.0, lambda: setattr(world, "is_away", False))
    elif what == "back":
        world.is_away = False
    elif what == "jump":
        one.jump += timedelta(days=world.rng.choice([-1, 1]))


def settled(world: World, living: list[Process]) -> list[bool]:
    """Of each key, whether exactly one of those that live has it."""
    standings = ([each.members.standing(key) for each in living] for key in KEYS)
    return [found.count(Standing.OURS) == 1 for found in standings]


@pytest.mark.parametrize("seed", range(WORLDS))
async def test_no_two_members_are_at_work_on_one_key_at_once(seed: int) -> None:
    world = await lived(seed)
    assert not faults(world.changes)
    assert len(world.changes) > 20


# -- members that break one of the rules: each is found out


class NeverLooks(Members):
    """Rule 2: what others claim is nothing to it."""

    def standing(self, key: str) -> Standing:
        self._others, kept = {}, self._others
        self._established, before = self._possible[0], self._established
        try:
            return super().standing(key)
        finally:
            self._others, self._established = kept, before


class WritesTooSoon(Members):
    """Rule 1: it lets go of what it still works on."""

    def _may_write(self, roster: Roster) -> bool:
        return True


class NeverExpires(Members):
    """Rule 4: a Lease is for ever."""

    def is_valid(self) -> bool:
        return True


# Where to begin: the first of them in which it shows, so that it need not be looked for.
@pytest.mark.parametrize(("kind", "first"), [(NeverLooks, 1), (WritesTooSoon, 21), (NeverExpires, 10)])
async def test_members_that_break_a_rule_are_found_out(kind: type[Members], first: int) -> None:
    for seed in range(first, first + 200):
        try:
            world = await lived(seed, kind)
        except AssertionError:
            continue
        if faults(world.changes):
            return
    pytest.fail(f"{kind.__doc__} In 200 worlds nobody noticed.")
