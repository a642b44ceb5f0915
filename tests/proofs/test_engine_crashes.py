"""A sync engine is killed before or after any call to the cluster; a new engine without its memory continues.

At any kill point: the outcome is the same, no hook runs twice, none is skipped or left behind.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from support.engine_crashes import killed, straight
from support.engine_histories import SCENES
from support.engine_kills import forget_marks, rehearsed, wrongs

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]


async def test_killed_engine_repeats_no_hook_and_skips_none(size: Callable[..., int], rng: random.Random) -> None:
    assert len(SCENES) >= 30
    count = size(2000, test=4)
    names = rng.sample(sorted(SCENES), min(len(SCENES), max(1, count // 2)))
    wrong = await wrongs(await rehearsed(names), count, rng)
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:5])


@pytest.mark.tier("all", "prove")
async def test_proof_detects_an_engine_that_does_not_recognize_its_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validates the proof: without the operation annotation on them, hooks run again after a kill."""
    scene = SCENES["phases"]
    expected, calls = await straight(scene)
    call_index = next(number for number, call in enumerate(calls) if call == "create Job/pre")
    await killed(scene, expected, [(call_index, True)])
    forget_marks(monkeypatch)
    with pytest.raises(AssertionError, match=r"hooks were made too often: \{'pre': 2\}"):
        await killed(scene, expected, [(call_index, True)])
