"""Claims of gained Applications: all before any reconcile, retried on failure, none after close."""

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
    """A queue whose claims block until `open` is set, and the keys that it enqueued."""

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


async def test_reconcile_waits_until_all_keys_are_claimed(scene: Scene) -> None:
    scene.takeover.add(key(number) for number in range(50))
    waiting = asyncio.create_task(scene.takeover.wait_for_turn(key(99)))
    await wait_until_async(lambda: scene.most >= MAX_CONCURRENT_CLAIMS)
    assert not waiting.done() and scene.most == MAX_CONCURRENT_CLAIMS
    await scene.until_calm()
    assert await waiting
    assert scene.tried == [key(number) for number in range(50)] and set(scene.given) == set(scene.tried)
    assert await scene.takeover.wait_for_turn(key(1))


async def test_failed_claim_is_retried_and_then_enqueued_anyway(scene: Scene) -> None:
    scene.refusals = {key(0): 1, key(1): 1000}
    scene.takeover.add([key(0), key(1), key(2)])
    await scene.until_calm()
    assert scene.tried.count(key(0)) == 2 and scene.tried.count(key(1)) > 2
    assert set(scene.given) == {key(0), key(1), key(2)}


async def test_key_removed_from_the_queue_is_not_claimed(scene: Scene) -> None:
    scene.takeover.add(key(number) for number in range(MAX_CONCURRENT_CLAIMS + 1))
    await wait_until_async(lambda: scene.most == MAX_CONCURRENT_CLAIMS)
    scene.takeover.remove(key(MAX_CONCURRENT_CLAIMS))
    await scene.until_calm()
    assert key(MAX_CONCURRENT_CLAIMS) not in scene.tried


async def test_closed_queue_claims_nothing_and_permits_no_reconcile() -> None:
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
