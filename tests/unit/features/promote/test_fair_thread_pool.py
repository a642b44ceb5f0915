"""Promotion sessions run in their own threads, which projects share fairly."""

from __future__ import annotations

import asyncio
import threading

import pytest

from argosy.fair_share import Tenant
from argosy.features.promote.fair_thread_pool import MAX_SESSIONS, SessionThreads
from support.deadlines import HANG_SECONDS, wait_until_async

pytestmark = pytest.mark.anyio


class Blocked:
    """Sessions of project `hostile` that block until they are released."""

    def __init__(self) -> None:
        self.release, self.begun = threading.Event(), 0
        self.threads = SessionThreads()

    def work(self) -> None:
        self.begun += 1
        self.release.wait(HANG_SECONDS)

    async def start(self, count: int) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.threads.run(Tenant("hostile"), self.work)) for _ in range(count)]
        await wait_until_async(lambda: self.begun == MAX_SESSIONS)
        return tasks


async def test_blocked_sessions_of_one_project_do_not_block_other_projects_or_threads() -> None:
    blocked = Blocked()
    tasks = await blocked.start(10 * MAX_SESSIONS)
    assert await blocked.threads.run(Tenant("team"), lambda: "answered") == "answered"
    assert await asyncio.to_thread(lambda: "read") == "read"
    assert blocked.begun == MAX_SESSIONS and not any(task.done() for task in tasks)
    blocked.release.set()
    await asyncio.gather(*tasks)


async def test_cancelled_caller_does_not_free_a_busy_thread() -> None:
    blocked = Blocked()
    tasks = await blocked.start(MAX_SESSIONS + 1)
    for task in tasks[:MAX_SESSIONS]:
        task.cancel()
    await asyncio.gather(*tasks[:MAX_SESSIONS], return_exceptions=True)
    assert await blocked.threads.run(Tenant("team"), lambda: "answered") == "answered"
    assert blocked.begun == MAX_SESSIONS
    blocked.release.set()
    await tasks[-1]
    assert blocked.begun == MAX_SESSIONS + 1


async def test_session_cancelled_before_its_turn_is_not_started() -> None:
    blocked = Blocked()
    tasks = await blocked.start(MAX_SESSIONS + 5)
    for task in tasks[MAX_SESSIONS:]:
        task.cancel()
    blocked.release.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await blocked.threads.run(Tenant("hostile"), lambda: "its turn comes after theirs")
    assert blocked.begun == MAX_SESSIONS


async def test_session_error_is_raised_to_the_caller() -> None:
    def fail() -> None:
        raise ValueError("no environments")

    with pytest.raises(ValueError, match="no environments"):
        await SessionThreads().run(Tenant("team"), fail)
