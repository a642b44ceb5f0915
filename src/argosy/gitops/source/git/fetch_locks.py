"""One fetch at a time for each mirror, among all processes.

In: a path. Out: the lock's file descriptor, which git inherits. Never: a lock that a killed process leaves behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

POLL_SECONDS = 0.05


@contextlib.asynccontextmanager
async def locked(path: Path, *, seconds: float) -> AsyncIterator[int]:
    """Raises TimeoutError. The kernel frees it when the last process that holds it ends, git's own among them."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        async with asyncio.timeout(seconds):
            while not _take(descriptor):  # noqa: ASYNC110  there is no event to wait for between processes
                await asyncio.sleep(POLL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
