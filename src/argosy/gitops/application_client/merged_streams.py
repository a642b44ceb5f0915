"""Merges several async streams into one stream of batches.

In: streams. Out: batches in order of arrival. Never: buffers more than MAX_QUEUED_ITEMS for a slow reader; leaves a
stream running after the reader stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

MOST: Final = 1000
Item = TypeVar("Item")


async def merged(
    streams: Sequence[AsyncGenerator[Item, None]], *, pause: float = 0.0, most: int = MOST
) -> AsyncGenerator[list[Item], None]:
    """Yield batches until all streams end. `gather_seconds`: seconds to gather more items before each batch."""
    came: asyncio.Queue[Item | None] = asyncio.Queue(most)

    async def read(stream: AsyncGenerator[Item, None]) -> None:
        try:
            async with aclosing(stream):
                async for each in stream:
                    await came.put(each)
        except asyncio.CancelledError:
            raise  # nobody reads the end marker
        except Exception:
            await came.put(None)
            raise
        await came.put(None)

    tasks = [asyncio.create_task(read(each)) for each in streams]
    left = len(tasks)
    try:
        while left:
            batch = [await came.get()]
            await asyncio.sleep(pause)
            while not came.empty():
                batch.append(came.get_nowait())
            left -= batch.count(None)
            if found := [each for each in batch if each is not None]:
                yield found
        await asyncio.gather(*tasks)  # re-raise an unexpected error of a stream
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
