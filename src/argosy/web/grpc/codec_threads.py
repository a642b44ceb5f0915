"""Threads that encode and decode large messages: few, and those of unauthenticated callers apart.

In: a function and the size of its input. Out: its result. Never: a large message on the event loop; a thread that both
signed-in and unauthenticated callers wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

MAX_INLINE_BYTES: Final = 4 << 10  # of a message; a shorter one takes milliseconds, and 25 ms at worst
SIGNED_IN_THREADS: Final = 4  # a list of 1,000 Applications takes seconds, in which short messages pass it
ANONYMOUS_THREADS: Final = 1
Result = TypeVar("Result")


class CodecThreads:
    def __init__(self) -> None:
        self._signed_in = ThreadPoolExecutor(SIGNED_IN_THREADS, thread_name_prefix="grpc-codec")
        self._anonymous = ThreadPoolExecutor(ANONYMOUS_THREADS, thread_name_prefix="anonymous-grpc-codec")

    async def run(self, function: Callable[[], Result], size: int, *, is_signed_in: bool) -> Result:
        if size <= MAX_INLINE_BYTES:
            return function()
        executor = self._signed_in if is_signed_in else self._anonymous
        return await asyncio.get_running_loop().run_in_executor(executor, function)
