"""An engine is killed before or after any of its calls to the cluster, and another, which knows nothing, goes on.

Whatever the moment: everything ends as it would have, no hook is made twice, none is forgotten or left behind.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from argosy.model.application import Phase
from argosy.sync.plan import Occasion
from support import engine_crashes
from support.engine_crashes import killed, straight
from support.engine_histories import SCENES
from support.engine_kills import rehearsed, wrongs

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]


async def test_a_killed_engine_repeats_nothing_and_forgets_nothing(
    size: Callable[[int], int], rng: random.Random
) -> None:
    known = await rehearsed()
    assert len(known) >= 30
    wrong = await wrongs(known, count := size(2000), rng)
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:5])


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
    monkeypatch.setattr(engine_crashes, "HANG_SECONDS", 2.0)
    with pytest.raises(AssertionError, match="never came so far"):
        await killed(scene, wanted, [(place, True)])
