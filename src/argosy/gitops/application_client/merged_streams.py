"""Merges several async streams into one stream of batches.

In: streams. Out: batches in order of arrival. Never: buffers more than MAX_QUEUED_ITEMS for a slow reader; leaves a
stream running after the reader stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Final, TypeVar

MAX_QUEUED_ITEMS: Final = 1000
Item = TypeVar("Item")


async def merge_streams(
    streams: Sequence[AsyncGenerator[Item, None]], *, gather_seconds: float = 0.0, max_queued: int = MAX_QUEUED_ITEMS
) -> AsyncGenerator[list[Item], None]:
    """Yield batches until all streams end. `gather_seconds`: seconds to gather more items before each batch."""
    queue: asyncio.Queue[Item | None] = asyncio.Queue(max_queued)

    async def forward(stream: AsyncGenerator[Item, None]) -> None:
        try:
            async with aclosing(stream):
                async for item in stream:
                    await queue.put(item)
        except asyncio.CancelledError:
            raise  # nobody reads the end marker
        except Exception:
            await queue.put(None)
            raise
        await queue.put(None)

    tasks = [asyncio.create_task(forward(source_stream)) for source_stream in streams]
    open_streams = len(tasks)
    try:
        while open_streams:
            batch = [await queue.get()]
            await asyncio.sleep(gather_seconds)
            while not queue.empty():
                batch.append(queue.get_nowait())
            open_streams -= batch.count(None)
            if items := [source_stream for source_stream in batch if source_stream is not None]:
                yield items
        await asyncio.gather(*tasks)  # re-raise an unexpected error of a stream
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
