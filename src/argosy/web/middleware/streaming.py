"""Streamed responses: each chunk is redacted, the caller is authorized again each second; they end with the server.

In: a Stream and a permission check. Out: chunks. Never: a chunk after the permission was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.redaction.redaction import Mask
from argosy.web.responses import Stream

log = logging.getLogger(__name__)
LOOK: Final = 0.9  # seconds


async def guarded(
    stream: Stream,
    may: Callable[[], Awaitable[bool]],
    is_past: Callable[[], bool],
    find_mask: Callable[[], Mask],
    closing: asyncio.Event,
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
                if not await may():
                    if stream.farewell and not is_past():  # if expired, the client reconnects with a new token
                        yield stream.farewell
                    return
            if coming.done():
                chunk, coming = coming.result(), None
                if chunk is None:
                    return
                yield find_mask().hide_again(chunk)  # a Secret or a project may have changed
    finally:
        tasks = [each for each in (ending, coming) if each]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (close := getattr(chunks, "aclose", None)) is not None:
            with contextlib.suppress(Exception):
                await close()


async def _next(chunks: AsyncIterator[bytes]) -> bytes | None:
    """Return the next chunk; None at the end, or after an error, which can no longer be reported to the client."""
    try:
        return await anext(chunks, None)
    except ArgosyError as error:
        log.warning("stream failed: %s", error)
    except Exception:
        log.exception("stream failed")
    return None
