"""Several streams as one, as what they bring comes.

In: streams. Out: batches in the order of their coming. Never: more than MOST that wait for a slow reader; a stream that
goes on when nobody reads any more.
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
    """`pause`: seconds in which more is gathered before a batch is given. Ends with the last stream."""
    came: asyncio.Queue[Item | None] = asyncio.Queue(most)

    async def read(stream: AsyncGenerator[Item, None]) -> None:
        try:
            async with aclosing(stream):
                async for each in stream:
                    await came.put(each)
        except asyncio.CancelledError:
            raise  # nobody reads a goodbye any more
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
        await asyncio.gather(*tasks)  # an error that no stream expected is the reader's
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
