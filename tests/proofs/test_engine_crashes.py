"""An engine is killed before or after any of its calls to the cluster, and another, which knows nothing, goes on.

Whatever the moment: everything ends as it would have, no hook is made twice, none is forgotten or left behind.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable

import engine_theatre
import pytest
from engine_scenes import SCENES
from engine_theatre import Outcome, killed, straight

from argosy.model.application import Phase
from argosy.sync.plan import Occasion

pytestmark = [pytest.mark.anyio, pytest.mark.prove]
Point = tuple[int, bool]


async def rehearsed() -> dict[str, tuple[Outcome, list[str]]]:
    return {name: await straight(scene) for name, scene in SCENES.items()}


def plans(calls: dict[str, int], count: int, rng: random.Random) -> list[tuple[str, list[Point]]]:
    """First each scene killed once somewhere, then at every point, then by two or three kills in a row."""
    moments = (False, True)
    once = [(name, [(place, after)]) for name, most in calls.items() for place in range(most) for after in moments]
    rng.shuffle(once)
    first = {name: (name, points) for name, points in reversed(once)}
    rest = [each for each in once if each[1] is not first[each[0]][1]]
    found = [*first.values(), *rest]
    names = itertools.cycle(calls)
    while len(found) < count:
        name = next(names)
        kills = rng.randint(2, 3)
        found.append((name, [(rng.randrange(calls[name]), rng.random() < 0.5) for _ in range(kills)]))
    return found[:count]


async def test_a_killed_engine_repeats_nothing_and_forgets_nothing(
    size: Callable[[int], int], rng: random.Random
) -> None:
    known = await rehearsed()
    assert len(known) >= 30
    todo = plans({name: len(calls) for name, (_, calls) in known.items()}, size(2000), rng)
    places = asyncio.Semaphore(4)

    async def play(name: str, points: list[Point]) -> str:
        wanted, calls = known[name]
        async with places:
            try:
                await killed(SCENES[name], wanted, points)
            except AssertionError as error:
                moments = (f"{'after' if after else 'before'} {calls[place]} ({place})" for place, after in points)
                return f"{name}, killed {', '.join(moments)}: wanted {wanted}, but {error}"
        return ""

    wrong = [said for said in await asyncio.gather(*(play(*each) for each in todo)) if said]
    assert not wrong, f"{len(wrong)} of {len(todo)}:\n" + "\n".join(wrong[:5])


async def test_an_engine_that_does_not_know_its_own_hooks_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof proves something: without the mark of the operation on them, hooks run again after a kill."""
    scene = SCENES["phases"]
    wanted, calls = await straight(scene)
    place = next(number for number, call in enumerate(calls) if call == "create Job/pre")
    await killed(scene, wanted, [(place, True)])
    marks = itertools.count()

    def forgetful(self: Occasion, phase: Phase) -> str:
        return f"{next(marks)}-{phase}"

    monkeypatch.setattr(Occasion, "mark", forgetful)
    monkeypatch.setattr(engine_theatre, "PATIENCE", 2.0)
    with pytest.raises(AssertionError, match="never came so far"):
        await killed(scene, wanted, [(place, True)])
