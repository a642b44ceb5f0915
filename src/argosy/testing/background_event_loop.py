"""An event loop in a thread, so that simulators and the engine keep running while a test does not await.

In: coroutines. Out: what they return, or raise. Never: outlives the test run.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, TypeVar

from argosy.errors import ArgosyError

Answer = TypeVar("Answer")
Thing = TypeVar("Thing")


class Background:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="argosy", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        __tracebackhide__ = True
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except ArgosyError as error:
            raise error.with_traceback(None) from None  # the internal traceback does not help the test author

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Held(Generic[Thing]):
    """Keeps an async context manager open until `close`. One task enters and leaves it, as asyncio requires."""

    def __init__(self, background: Background, context: AbstractAsyncContextManager[Thing]) -> None:
        self._background = background
        self._context = context
        self.thing = background.run(self._open())

    async def _open(self) -> Thing:
        self._done = asyncio.Event()
        opened: asyncio.Future[Thing] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._hold_open(opened))
        self._life.add_done_callback(lambda _: opened.done() or opened.cancel())
        with contextlib.suppress(asyncio.CancelledError):
            await opened
        if opened.cancelled():
            await self._life  # raises the error that prevented opening
        return opened.result()

    async def _hold_open(self, opened: asyncio.Future[Thing]) -> None:
        async with self._context as value:
            opened.set_result(value)
            await self._done.wait()

    def close(self) -> None:
        self._background.run(self._close())

    async def _close(self) -> None:
        self._done.set()
        await self._life
