from __future__ import annotations

import asyncio
import threading

import pytest

from argosy.web.grpc.codec_threads import MAX_INLINE_BYTES, SIGNED_IN_THREADS, CodecThreads
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
LARGE = MAX_INLINE_BYTES + 1


@pytest.mark.parametrize("is_signed_in", [True, False])
async def test_only_a_large_message_is_handed_to_a_thread(is_signed_in: bool) -> None:
    threads, own = CodecThreads(), threading.current_thread()
    assert await threads.run(threading.current_thread, MAX_INLINE_BYTES, is_signed_in=is_signed_in) is own
    assert await threads.run(threading.current_thread, LARGE, is_signed_in=is_signed_in) is not own


async def test_strangers_wait_for_each_other_but_nobody_else_for_them() -> None:
    threads, allowed = CodecThreads(), threading.Event()
    try:
        waiting = [
            asyncio.create_task(threads.run(lambda: allowed.wait(HANG_SECONDS), LARGE, is_signed_in=False))
            for _ in range(10)
        ]
        async with asyncio.timeout(HANG_SECONDS):
            assert await threads.run(lambda: "decoded", LARGE, is_signed_in=True) == "decoded"
        assert not any(task.done() for task in waiting)
    finally:
        allowed.set()
    assert await asyncio.gather(*waiting) == [True] * 10


async def test_few_messages_are_converted_at_the_same_time() -> None:
    threads, running, most, lock = CodecThreads(), 0, 0, threading.Lock()
    is_next = threading.Event()

    def convert() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        is_next.wait(0.01)
        with lock:
            running -= 1

    await asyncio.gather(*(threads.run(convert, LARGE, is_signed_in=True) for _ in range(20)))
    assert most <= SIGNED_IN_THREADS
