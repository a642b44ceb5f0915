"""Plans and runs crashes of an engine.

In: scenes, the number of crashes, and their points. Out: outcomes that differ from those without crashes; a planted bug
that crashes reveal. Never: defines the expected outcome of a scene.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterable

import pytest

from argosy.gitops.application import Phase
from argosy.gitops.sync.sync_plan import Occasion
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.engine_crashes import Opened, Outcome, killed, straight
from support.engine_histories import SCENES

Point = tuple[int, bool]
Rehearsed = dict[str, tuple[Outcome, list[str]]]


async def rehearsed(names: Iterable[str] = SCENES, opened: Opened = EmbeddedCluster.open) -> Rehearsed:
    return {name: await straight(SCENES[name], opened) for name in names}


def plans(calls: dict[str, int], count: int, rng: random.Random) -> list[tuple[str, list[Point]]]:
    """First one crash per scene, then one at every point, then two or three crashes in a row."""
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


async def wrongs(
    known: Rehearsed, count: int, rng: random.Random, opened: Opened = EmbeddedCluster.open, *, at_once: int = 4
) -> list[str]:
    """One message for each wrong outcome."""
    places = asyncio.Semaphore(at_once)

    async def play(name: str, points: list[Point]) -> str:
        wanted, calls = known[name]
        async with places:
            try:
                await killed(SCENES[name], wanted, points, opened)
            except AssertionError as error:
                moments = (f"{'after' if after else 'before'} {calls[place]} ({place})" for place, after in points)
                return f"{name}, killed {', '.join(moments)}: wanted {wanted}, but {error}"
        return ""

    todo = plans({name: len(calls) for name, (_, calls) in known.items()}, count, rng)
    return [said for said in await asyncio.gather(*(play(*each) for each in todo)) if said]


def forget_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: hooks lack the mark of their operation, so that the next engine creates them again."""
    marks = itertools.count()

    def forgetful(self: Occasion, phase: Phase) -> str:
        return f"{next(marks)}-{phase}"

    monkeypatch.setattr(Occasion, "mark", forgetful)
