"""What the tests ask the system about processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from support.deadlines import HANG_SECONDS


def is_running(pid: int) -> bool:
    """Whether the process is there and not just waiting for its parent to take note of its end."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    """The pids of all children, zombies too."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def soon(condition: Callable[[], bool], seconds: float = HANG_SECONDS) -> bool:
    """Whether the condition comes true within the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True
