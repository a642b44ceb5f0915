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
from argosy.observability.redaction.secret_mask import SecretMask
from argosy.web.responses import StreamResponse

log = logging.getLogger(__name__)
PERMISSION_CHECK_SECONDS: Final = 0.9  # seconds


async def guard_stream(
    stream: StreamResponse,
    find_revocation: Callable[[], Awaitable[Exception | None]],
    is_expired: Callable[[], bool],
    find_mask: Callable[[], SecretMask],
    closing: asyncio.Event,
) -> AsyncIterator[bytes]:
    assert stream.chunks is not None
    chunks = aiter(stream.chunks)
    closing_task: asyncio.Task[Any] = asyncio.create_task(closing.wait())
    next_chunk: asyncio.Task[Any] | None = None
    loop = asyncio.get_running_loop()
    checked_at = loop.time()
    try:
        while not closing.is_set():
            next_chunk = next_chunk or asyncio.create_task(_read_next_chunk(chunks))
            remaining = max(0.0, checked_at + PERMISSION_CHECK_SECONDS - loop.time())
            await asyncio.wait({next_chunk, closing_task}, timeout=remaining, return_when=asyncio.FIRST_COMPLETED)
            if loop.time() - checked_at >= PERMISSION_CHECK_SECONDS:
                checked_at = loop.time()
                if revocation := await find_revocation():
                    if stream.encode_error:
                        yield stream.encode_error(revocation)
                    elif stream.last_chunk and not is_expired():  # if expired, the client reconnects with a new token
                        yield stream.last_chunk
                    return
            if next_chunk.done():
                chunk, next_chunk = next_chunk.result(), None
                if isinstance(chunk, Exception):
                    chunk = _encode_failure(stream, chunk)
                if chunk is None:
                    return
                yield find_mask().mask_chunk(chunk)  # a Secret or a project may have changed
    finally:
        tasks = [pending for pending in (closing_task, next_chunk) if pending]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if (close := getattr(chunks, "aclose", None)) is not None:
            with contextlib.suppress(Exception):
                await close()


async def _read_next_chunk(chunks: AsyncIterator[bytes]) -> bytes | Exception | None:
    """Return the next chunk, None at the end, or the error that ended the stream."""
    try:
        return await anext(chunks, None)
    except Exception as error:
        return error


def _encode_failure(stream: StreamResponse, error: Exception) -> bytes | None:
    """Return the last chunk of a stream that failed; without a form for errors, the error is only logged."""
    if stream.encode_error:
        return stream.encode_error(error)
    if isinstance(error, ArgosyError):
        log.warning("stream failed: %s", error)
    else:
        log.error("stream failed", exc_info=error)
    return None
