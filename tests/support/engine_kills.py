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

from argosy.gitops.application import SyncPhase
from argosy.gitops.sync.sync_plan import OperationContext
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
    once = [
        (name, [(point, is_after)]) for name, most in calls.items() for point in range(most) for is_after in moments
    ]
    rng.shuffle(once)
    first = {name: (name, points) for name, points in reversed(once)}
    other_plans = [plan for plan in once if plan[1] is not first[plan[0]][1]]
    all_plans = [*first.values(), *other_plans]
    names = itertools.cycle(calls)
    while len(all_plans) < count:
        name = next(names)
        kills = rng.randint(2, 3)
        all_plans.append((name, [(rng.randrange(calls[name]), rng.random() < 0.5) for _ in range(kills)]))
    return all_plans[:count]


async def wrongs(
    rehearsals: Rehearsed, count: int, rng: random.Random, opened: Opened = EmbeddedCluster.open, *, at_once: int = 4
) -> list[str]:
    """One message for each wrong outcome."""
    semaphore = asyncio.Semaphore(at_once)

    async def play(name: str, points: list[Point]) -> str:
        expected, calls = rehearsals[name]
        async with semaphore:
            try:
                await killed(SCENES[name], expected, points, opened)
            except AssertionError as error:
                moments = (
                    f"{'after' if is_after else 'before'} {calls[point]} ({point})" for point, is_after in points
                )
                return f"{name}, killed {', '.join(moments)}: wanted {expected}, but {error}"
        return ""

    todo = plans({name: len(calls) for name, (_, calls) in rehearsals.items()}, count, rng)
    return [message for message in await asyncio.gather(*(play(*plan) for plan in todo)) if message]


def forget_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted bug: hooks lack the mark of their operation, so that the next engine creates them again."""
    marks = itertools.count()

    def forgetful(self: OperationContext, phase: SyncPhase) -> str:
        return f"{next(marks)}-{phase}"

    monkeypatch.setattr(OperationContext, "build_hook_mark", forgetful)
