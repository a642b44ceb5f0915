"""Work queue: no key is queued twice, given to two workers or lost; delays, backoff, urgency and fair shares."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from argosy.kube.controller.clock import Backoff
from argosy.kube.controller.work_queue import WorkQueue
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
BACKOFF = Backoff(first_seconds=1, max_seconds=8, jitter=0)


def key(name: str) -> ResourceKey:
    return ResourceKey("", "ConfigMap", "n", name)


A, B = key("a"), key("b")


async def test_queued_key_is_not_added_twice() -> None:
    queue = WorkQueue()
    for one in (A, B, A, A):
        queue.add(one)
    assert [await queue.take(), await queue.take(), len(queue)] == [A, B, 0]


async def test_key_added_while_processed_is_queued_again_when_done() -> None:
    queue = WorkQueue()
    queue.add(A)
    assert await queue.take() == A
    queue.add(A)
    queue.add(A)
    assert len(queue) == 0
    queue.done(A)
    assert len(queue) == 1 and await queue.take() == A
    queue.done(A)
    assert len(queue) == 0


async def test_key_added_before_its_turn_restarts_is_not_queued_again(clock: Any) -> None:
    queue = WorkQueue(clock=clock)
    queue.add(A)
    assert await queue.take() == A
    queue.add(A, is_urgent=True)
    queue.add_after(A, 10)
    queue.restart(A)
    queue.done(A)
    assert len(queue) == 0 and clock.waits() == []
    queue.add(A)
    queue.restart(A)  # it is not in process
    assert len(queue) == 1 and await queue.take() == A


async def test_key_added_after_its_turn_restarted_is_queued_again_when_done() -> None:
    queue = WorkQueue()
    queue.add(A)
    assert await queue.take() == A
    queue.add(A)
    queue.restart(A)
    queue.add(A)
    queue.done(A)
    assert len(queue) == 1


async def test_earliest_of_several_delays_wins(clock: Any) -> None:
    queue = WorkQueue(clock=clock)
    queue.add_after(A, 10)
    queue.add_after(A, 5)
    queue.add_after(A, 20)
    clock.advance(4.9)
    assert len(queue) == 0
    clock.advance(0.2)
    assert len(queue) == 1
    assert clock.waits() == []


async def test_taking_a_key_cancels_its_delayed_add(clock: Any) -> None:
    queue = WorkQueue(clock=clock)
    queue.add_after(A, 10)
    queue.add(A)
    assert await queue.take() == A
    queue.done(A)
    clock.advance(100)
    assert len(queue) == 0


async def test_retry_backoff_grows_to_a_cap_and_resets_after_forget(clock: Any) -> None:
    queue = WorkQueue(clock=clock, backoff=BACKOFF)
    waits = []
    for _ in range(6):
        waits.append(queue.retry_later(A))
        clock.advance(100)
    assert waits == [1, 2, 4, 8, 8, 8]
    queue.forget_failures(A)
    assert queue.retry_later(A) == 1


def test_jitter_only_shortens_a_delay() -> None:
    waits = [Backoff(first_seconds=1, max_seconds=8, jitter=0.5).delay(3) for _ in range(200)]
    assert 2 <= min(waits) < 2.5 and 3.5 < max(waits) <= 4
    assert Backoff(max_seconds=8, jitter=0).delay(10_000) == 8


async def test_closed_queue_releases_all_workers(clock: Any) -> None:
    queue = WorkQueue(clock=clock)
    takers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add_after(A, 1)
    queue.close()
    assert await asyncio.gather(*takers) == [None, None, None]
    clock.advance(2)
    queue.add(A)
    assert await queue.take() is None


async def test_cancelled_take_does_not_lose_a_key() -> None:
    queue = WorkQueue()
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add(A)  # wakes the first task, which is cancelled before it runs
    first.cancel()
    assert await asyncio.wait_for(second, HANG_SECONDS) == A
    third = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    third.cancel()
    queue.add(B)
    await asyncio.gather(third, return_exceptions=True)
    assert await asyncio.wait_for(queue.take(), HANG_SECONDS) == B


async def test_workers_never_share_a_key_and_see_the_last_change() -> None:
    chance = random.Random(7)
    queue = WorkQueue()
    requested = dict.fromkeys(map(key, "abcde"), 0)
    done = dict(requested)
    busy: set[ResourceKey] = set()

    async def work() -> None:
        while (one := await queue.take()) is not None:
            assert one not in busy
            busy.add(one)
            count = requested[one]
            for _ in range(chance.randrange(3)):
                await asyncio.sleep(0)
            done[one] = count
            busy.discard(one)
            queue.done(one)

    workers = [asyncio.create_task(work()) for _ in range(4)]
    for _ in range(2_000):
        one = chance.choice(list(requested))
        requested[one] += 1
        queue.add(one)
        if chance.random() < 0.3:
            await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    queue.close()
    await asyncio.gather(*workers)
    assert done == requested


async def test_urgent_key_is_taken_first_and_only_once() -> None:
    queue = WorkQueue()
    for one in (A, B):
        queue.add(one)
    queue.add(B, is_urgent=True)
    queue.add(B)
    assert [await queue.take(), await queue.take(), len(queue)] == [B, A, 0]
    queue.add(B, is_urgent=True)  # while it is processed
    assert not len(queue) and not queue.is_idle
    queue.add(key("c"))
    queue.done(B)
    assert await queue.take() == B
    queue.done(B)
    queue.done(A)
    assert await queue.take() == key("c")
    queue.done(key("c"))
    assert queue.is_idle


async def test_queue_reports_wait_times_processing_times_and_worker_count(clock: Any) -> None:
    queue = WorkQueue(clock=clock)
    workers = [asyncio.create_task(queue.take()) for _ in range(2)]
    await asyncio.sleep(0)
    assert queue.worker_count == 2 and queue.oldest_wait_seconds == 0.0 and queue.longest_processing == (None, 0.0)
    queue.add(A)
    await asyncio.gather(*workers[:1])
    assert queue.worker_count == 2 and queue.last_progress_at == clock.monotonic()
    workers[1].cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    clock.advance(7)
    queue.add(B)
    clock.advance(3)
    queue.add(B, is_urgent=True)  # it has waited since it was first added
    assert (
        queue.worker_count == 1
        and queue.oldest_wait_seconds == 3
        and queue.longest_processing == (A, 10)
        and len(queue) == 1
    )
    queue.done(A)
    assert queue.longest_processing == (None, 0.0) and queue.last_progress_at == clock.monotonic()
    assert (queue.added_count, queue.retried_count, queue.is_closed) == (2, 0, False)


def tenant(one: ResourceKey) -> str:
    return one.name.partition("-")[0]


async def take_names(queue: WorkQueue, count: int) -> list[str]:
    """Return the names of the next keys that can be taken now, at most `count`."""
    names = []
    for _ in range(count):
        taker = asyncio.create_task(queue.take())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if not taker.done():
            taker.cancel()
            await asyncio.gather(taker, return_exceptions=True)
            break
        names.append(taker.result().name)
    return names


async def test_tenant_with_all_slots_in_use_does_not_block_another() -> None:
    queue = WorkQueue(find_tenant=tenant, slots_per_tenant=2)
    for number in range(5):
        queue.add(key(f"greedy-{number}"))
    assert await take_names(queue, 5) == ["greedy-0", "greedy-1"]
    queue.add(key("other-0"))
    queue.add(key("other-1"))
    assert await take_names(queue, 5) == ["other-0"]
    assert queue.list_depths() == {"greedy": 3, "other": 1}
    queue.done(key("other-0"))
    assert await take_names(queue, 5) == ["other-1"]


async def test_single_tenant_uses_all_slots_and_a_freed_slot_wakes_a_worker() -> None:
    queue = WorkQueue(find_tenant=tenant, slots_per_tenant=2)
    for number in range(3):
        queue.add(key(f"only-{number}"))
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    while sum(worker.done() for worker in workers) < 2:
        await asyncio.sleep(0)
    queue.done(key("only-0"))
    assert {worker.name for worker in await asyncio.gather(*workers)} == {"only-0", "only-1", "only-2"}


async def test_urgent_keys_of_one_tenant_do_not_block_another() -> None:
    queue = WorkQueue(find_tenant=tenant, slots_per_tenant=1)
    queue.add(key("greedy-0"))
    assert await take_names(queue, 1) == ["greedy-0"]
    for number in range(1, 4):
        queue.add(key(f"greedy-{number}"), is_urgent=True)
    queue.add(key("other-0"))
    queue.done(key("greedy-0"))
    assert await take_names(queue, 1) == ["other-0"]
