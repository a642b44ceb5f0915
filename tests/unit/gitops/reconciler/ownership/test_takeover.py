"""Claims of what has become ours: all before any work, again where they fail, and never after the end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from argosy.errors import Conflict
from argosy.gitops.reconciler.ownership import claim_before_reconcile_queue
from argosy.gitops.reconciler.ownership.claim_before_reconcile_queue import MAX_CONCURRENT_CLAIMS, ClaimQueue
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS, wait_until_async

pytestmark = pytest.mark.anyio


def key(number: int) -> ResourceKey:
    return ResourceKey("argoproj.io", "Application", "argocd", f"app-{number}")


class Scene:
    """Claims that take until they are let through, and what was given to whoever works."""

    def __init__(self) -> None:
        self.given: list[ResourceKey] = []
        self.takeover = ClaimQueue(self.claim, self.given.append)
        self.tried: list[ResourceKey] = []
        self.refusals: dict[ResourceKey, int] = {}
        self.open = asyncio.Event()
        self.under_way = self.most = 0

    async def claim(self, one: ResourceKey) -> None:
        self.tried.append(one)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.open.wait()
        finally:
            self.under_way -= 1
        if self.refusals.get(one, 0) > 0:
            self.refusals[one] -= 1
            raise Conflict("it has changed")

    async def until_calm(self) -> None:
        self.open.set()
        async with asyncio.timeout(HANG_SECONDS):
            while self.takeover._waiting or self.takeover._in_progress:
                await asyncio.sleep(0.01)


@pytest.fixture(autouse=True)
def nobody_loses_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_before_reconcile_queue, "MAX_CLAIM_WAIT_SECONDS", HANG_SECONDS)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    new_scene = Scene()
    running = asyncio.create_task(new_scene.takeover.run())
    await asyncio.sleep(0)
    yield new_scene
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


async def test_work_waits_until_everything_is_claimed(scene: Scene) -> None:
    scene.takeover.add(key(number) for number in range(50))
    waiting = asyncio.create_task(scene.takeover.wait_for_turn(key(99)))
    await wait_until_async(lambda: scene.most >= MAX_CONCURRENT_CLAIMS)
    assert not waiting.done() and scene.most == MAX_CONCURRENT_CLAIMS
    await scene.until_calm()
    assert await waiting
    assert scene.tried == [key(number) for number in range(50)] and set(scene.given) == set(scene.tried)
    assert await scene.takeover.wait_for_turn(key(1))


async def test_a_claim_that_is_refused_is_tried_again_and_then_left_to_who_works(scene: Scene) -> None:
    scene.refusals = {key(0): 1, key(1): 1000}
    scene.takeover.add([key(0), key(1), key(2)])
    await scene.until_calm()
    assert scene.tried.count(key(0)) == 2 and scene.tried.count(key(1)) > 2
    assert set(scene.given) == {key(0), key(1), key(2)}


async def test_what_is_another_s_meanwhile_is_not_claimed(scene: Scene) -> None:
    scene.takeover.add(key(number) for number in range(MAX_CONCURRENT_CLAIMS + 1))
    await wait_until_async(lambda: scene.most == MAX_CONCURRENT_CLAIMS)
    scene.takeover.remove(key(MAX_CONCURRENT_CLAIMS))
    await scene.until_calm()
    assert key(MAX_CONCURRENT_CLAIMS) not in scene.tried


async def test_after_the_end_nothing_is_worked_on_or_claimed() -> None:
    scene = Scene()
    running = asyncio.create_task(scene.takeover.run())
    scene.takeover.add([key(0)])
    turn = asyncio.create_task(scene.takeover.wait_for_turn(key(1)))
    await wait_until_async(lambda: scene.tried)
    running.cancel()
    assert not await turn, "whoever waited goes home"
    scene.takeover.add([key(2)])
    assert not await scene.takeover.wait_for_turn(key(2)) and scene.tried == [key(0)]
    with contextlib.suppress(asyncio.CancelledError):
        await running
