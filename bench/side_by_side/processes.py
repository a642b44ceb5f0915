"""What processes cost, as /proc tells it: resident memory and CPU time, children included."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


def with_children(pids: Iterable[int]) -> set[int]:
    """The processes and all their descendants."""
    parents = {}
    for process_folder in PROC.glob("[0-9]*"):
        try:
            fields = _fields(int(process_folder.name))
        except OSError:
            continue
        parents[int(process_folder.name)] = int(fields[1])
    all_pids = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in all_pids} - all_pids:
        all_pids |= more
    return all_pids


def resident_bytes(pids: Iterable[int]) -> int:
    return sum(int(fields[21]) * PAGE for fields in _all_fields(pids))


def cpu_seconds(pids: Iterable[int]) -> float:
    return sum(sum(map(int, fields[11:13])) / TICKS for fields in _all_fields(pids))


def total_cpu_seconds(pids: Iterable[int]) -> float:
    """Those of children that have ended included."""
    return sum(sum(map(int, fields[11:15])) / TICKS for fields in _all_fields(pids))


def _all_fields(pids: Iterable[int]) -> Iterator[list[str]]:
    for pid in with_children(pids):
        with contextlib.suppress(OSError):  # a child that has ended since
            yield _fields(pid)


def _fields(pid: int) -> list[str]:
    """Those of `stat` after the name, which may hold spaces: state, parent, …"""
    return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
