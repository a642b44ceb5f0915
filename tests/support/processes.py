"""Reads information about processes from /proc."""

from __future__ import annotations

import os
from pathlib import Path


def is_running(pid: int) -> bool:
    """True if the process exists and is not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def children(pid: int) -> list[int]:
    """Return the pids of all child processes, including zombies."""
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                pids.append(int(entry.name))
    return pids


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def cpu_ticks(pid: int) -> int:
    """Return the CPU time of the process in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])
