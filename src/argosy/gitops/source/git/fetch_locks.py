"""File lock that allows one fetch at a time per mirror, across processes.

In: a path. Out: the descriptor of the locked file, which git inherits. Never: leaves a lock behind after a crash.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import AsyncIterator
from pathlib import Path

POLL_INTERVAL_SECONDS = 0.05


@contextlib.asynccontextmanager
async def hold_lock(path: Path, *, seconds: float) -> AsyncIterator[int]:
    """Hold the lock, or raise TimeoutError. The kernel releases it when the last process that inherited it ends."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        async with asyncio.timeout(seconds):
            while not _try_lock(descriptor):  # noqa: ASYNC110  no event exists across processes
                await asyncio.sleep(POLL_INTERVAL_SECONDS)
        yield descriptor
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
