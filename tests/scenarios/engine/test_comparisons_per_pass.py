"""A pass compares an Application once; only an operation that syncs another revision is compared by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from support.deadlines import HANG_SECONDS
from support.engine import Room, config_map

pytestmark = pytest.mark.anyio
WAVE = "argocd.argoproj.io/sync-wave"


def in_wave(name: str, wave: int) -> dict[str, Any]:
    return {**config_map(name), "metadata": {"name": name, "annotations": {WAVE: str(wave)}}}


@pytest.fixture
def comparisons(room: Room, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of comparisons of each pass."""
    counts: list[int] = []
    comparer, controller = room.engine.reconciler.local_destination.comparer, room.engine.controller
    compare, run_pass = comparer.compare_app_state, controller._run_pass

    async def count_pass(*arguments: Any) -> Any:
        counts.append(0)
        return await run_pass(*arguments)

    async def count_comparison(*arguments: Any, **options: Any) -> Any:
        counts[-1] += 1
        return await compare(*arguments, **options)

    monkeypatch.setattr(comparer, "compare_app_state", count_comparison)
    monkeypatch.setattr(controller, "_run_pass", count_pass)
    return counts


async def test_sync_in_waves_is_compared_once_per_pass(room: Room, comparisons: list[int]) -> None:
    room.repository.push({f"app/{wave}.yaml": in_wave(f"wave-{wave}", wave) for wave in range(4)})
    await room.deliver(syncPolicy={"automated": {}})
    await room.until_synced()
    await room.until_over()
    assert len(comparisons) > 1 and max(comparisons) == 1


async def test_change_that_a_pass_reads_causes_no_further_pass(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    controller, queue = room.engine.controller, room.engine.queue
    run_pass = controller._run_pass

    async def run_pass_after_a_change(key: Any, context: Any) -> Any:
        queue.add(key)
        return await run_pass(key, context)

    monkeypatch.setattr(controller, "_run_pass", run_pass_after_a_change)
    room.repository.push({"app/settings.yaml": config_map(a="1")})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    async with asyncio.timeout(HANG_SECONDS):
        while not queue.is_idle:
            await asyncio.sleep(0.01)


async def test_rollback_is_compared_besides_the_target_until_it_is_over(room: Room, comparisons: list[int]) -> None:
    first = room.repository.push({"app/settings.yaml": config_map(a="one")})
    await room.deliver()
    await room.sync()
    await room.until_synced()
    second = room.repository.push({"app/settings.yaml": config_map(a="two")})
    await room.until(lambda status: status["sync"]["revision"] == second)
    await room.sync(revision=first)
    await room.until(lambda status: status["operationState"]["operation"]["sync"].get("revision") == first)
    await room.until_over()
    await room.until(lambda status: status["sync"]["revision"] == second and status["sync"]["status"] == "OutOfSync")
    assert max(comparisons) == 2
    connection = room.engine.reconciler.local_destination.cluster
    [memo] = room.engine.reconciler.memos
    assert memo.get_connection(connection).operation_comparison is None
    count = len(comparisons)
    await room.settled()
    assert max(comparisons[count:]) == 1
    assert memo.get_connection(connection).applied_messages is None
