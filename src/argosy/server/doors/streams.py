"""Answers that go on: each chunk masked, who asked asked for again each second, ended at once when the server ends.

In: a Stream and whether it is still permitted. Out: chunks. Never: a chunk after the right to see it is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from argosy.server.answers import Stream
from argosy.server.doors.masking import Mask

LOOK: Final = 0.9  # seconds


async def guarded(
    stream: Stream, may: Callable[[], bool], mask: Mask, closing: asyncio.Event
) -> AsyncIterator[bytes]:
    assert stream.chunks is not None
    chunks = aiter(stream.chunks)
    ending: asyncio.Task[Any] = asyncio.create_task(closing.wait())
    coming: asyncio.Task[Any] | None = None
    loop = asyncio.get_running_loop()
    looked = loop.time()
    try:
        while not closing.is_set():
            coming = coming or asyncio.create_task(_next(chunks))
            left = max(0.0, looked + LOOK - loop.time())
            await asyncio.wait({coming, ending}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if loop.time() - looked >= LOOK:
                looked = loop.time()
                if not may():
                    if stream.farewell:
                        yield stream.farewell
                    return
            if coming.done():
                chunk, coming = coming.result(), None
                if chunk is None:
                    return
                yield mask.hide_again(chunk)
    finally:
        tasks = [each for each in (ending, coming) if each]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (close := getattr(chunks, "aclose", None)) is not None:
            with contextlib.suppress(Exception):
                await close()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    return await anext(chunks, None)
