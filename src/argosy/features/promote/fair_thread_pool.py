"""Runs promotion sessions, which read Git and render, in threads that projects share fairly.

In: a blocking function and its tenant. Out: its result. Never: uses the process's default thread pool; gives a thread
to a second caller before it is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argosy.fair_share import Tenant, charge_work_to
from argosy.isolation.fair_slots import FairSlots

MAX_SESSIONS: Final = 4  # concurrent, per project; as many more are reserved for projects without a session
T = TypeVar("T")


class SessionThreads:
    def __init__(self) -> None:
        self._slots = FairSlots(MAX_SESSIONS, reserve=MAX_SESSIONS)
        self._threads = ThreadPoolExecutor(2 * MAX_SESSIONS, "promotions")
        self._tasks: set[asyncio.Task[object]] = set()

    async def run(self, tenant: Tenant, work: Callable[[], T]) -> T:
        """Wait for the tenant's turn, then run `work` in a thread.

        Work that has started continues if its caller is cancelled.
        """
        started = asyncio.Event()
        with charge_work_to(tenant):
            task = asyncio.create_task(self._run(work, started))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not started.is_set():
                task.cancel()
            raise

    async def _run(self, work: Callable[[], T], started: asyncio.Event) -> T:
        async with self._slots.hold():
            started.set()
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
