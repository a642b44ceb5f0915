"""Backoff of jq expressions that exceed the limits of their worker, for each project."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from argosy.fair_share import Tenant, charge_work_to
from argosy.isolation.errors import LimitExceeded
from argosy.isolation.script_backoff import FIRST_SECONDS, MAX_SECONDS, ScriptBackoff
from argosy.languages.jq_path_deletion import MAX_BATCH_DOCUMENTS, delete_paths_confined

pytestmark = pytest.mark.anyio
LOOP = ("loop",)


class Bench:
    """Fake worker pool: each document with `loops` set exceeds the CPU limit of its worker."""

    def __init__(self) -> None:
        self.asked, self.time = 0, 0.0
        self.backoff = ScriptBackoff(lambda: self.time)

    async def run_batch(self, function: str, payloads: Sequence[Any], *, limits: Any = None) -> list[Any]:
        self.asked += len(payloads)
        return [
            LimitExceeded("cpu", "too long") if payload["document"]["loops"] else {"document": {}, "faults": {}}
            for payload in payloads
        ]

    async def remove(self, count: int, loops: str = "true", project: str = "hostile") -> tuple[int, int, int]:
        """Return how many documents were run, how many were answered, and how many faults were reported."""
        before = self.asked
        documents = [f'{{"loops": {loops}, "n": {number}}}'.encode() for number in range(count)]
        with charge_work_to(Tenant(project)):
            answers, faults = await delete_paths_confined([(text, LOOP) for text in documents], self, self.backoff)
        return self.asked - before, len(answers), len(faults)


async def test_looping_expression_is_run_on_one_batch_and_then_skipped() -> None:
    bench = Bench()
    assert await bench.remove(100) == (MAX_BATCH_DOCUMENTS, 100, 1)
    assert await bench.remove(100) == (0, 100, 1), "it is told, and not run"


@pytest.mark.parametrize("count", [1, 100])
async def test_looping_expression_is_retried_with_growing_backoff(count: int) -> None:
    bench, waits = Bench(), []
    for _ in range(6):
        documents_run, *_rest = await bench.remove(count)
        assert documents_run
        waits.append(0.0)
        while (await bench.remove(count))[0] == 0:
            bench.time += 10.0
            waits[-1] += 10.0
        bench.time += MAX_SECONDS  # the attempt that ended the loop started another wait
    assert waits[0] == FIRST_SECONDS and max(waits) == MAX_SECONDS and waits == sorted(waits)


async def test_backoff_is_per_project_and_resets_after_a_success() -> None:
    bench = Bench()
    await bench.remove(3)
    assert await bench.remove(100, "false", project="team") == (100, 100, 0)
    bench.time += FIRST_SECONDS
    assert await bench.remove(3, "false") == (3, 3, 0)
    await bench.remove(3)
    bench.time += FIRST_SECONDS
    assert (await bench.remove(3))[0] == 3, "it waited as if it had failed twice in a row"
