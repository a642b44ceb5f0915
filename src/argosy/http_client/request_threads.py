"""Threads for blocking requests to hosts that may be slow.

In: a blocking request, its host and its deadline. Out: its result. Never: uses the event loop's default thread pool,
which Git and passwords need; lets one host hold all threads; waits for a thread longer than for the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argosy.errors import TransientError
from argosy.http_client.request_deadline import RequestDeadline

MAX_THREADS: Final = 16
MAX_THREADS_PER_HOST: Final = 4
T = TypeVar("T")


class RequestThreads:
    """Belongs to one event loop, and to one purpose: slow webhooks must not delay a sign-in."""

    def __init__(self, name: str, max_per_host: int = MAX_THREADS_PER_HOST) -> None:
        self._max_per_host = max_per_host
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix=name)
        self._host_slots: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}  # running and waiting requests by host

    async def run(self, host: str, deadline: RequestDeadline, request: Callable[[], T]) -> T:
        """Run the request when a thread is free. Raises TransientError if none is until the deadline."""
        slots = self._host_slots.setdefault(host, asyncio.Semaphore(self._max_per_host))
        self._users[host] = self._users.get(host, 0) + 1
        try:
            try:
                await asyncio.wait_for(slots.acquire(), deadline.seconds_left)
            except TimeoutError:
                raise _build_queue_error(host) from None
            try:
                return await self._run_in_thread(host, deadline, request)
            finally:
                slots.release()
        finally:
            self._users[host] -= 1
            if not self._users[host]:
                del self._users[host], self._host_slots[host]

    async def _run_in_thread(self, host: str, deadline: RequestDeadline, request: Callable[[], T]) -> T:
        submitted = self._executor.submit(request)
        result = asyncio.wrap_future(submitted)
        try:
            await asyncio.wait({result}, timeout=deadline.seconds_left)
            if not result.done() and submitted.cancel():
                raise _build_queue_error(host)
            return await result
        except asyncio.CancelledError:
            result.cancel()  # if no thread has taken it
            deadline.expire()
            raise


def _build_queue_error(host: str) -> TransientError:
    return TransientError(f"{host}: not requested in time, because other requests wait for slow hosts; try again")
