"""All processes that come from one, however they hide.

In: a pid. Out: their pids, what they use; or their end. Never: a process that is not a descendant.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
import time

_SET_CHILD_SUBREAPER = 36
_PATIENCE = 5.0
_FREE_SOCKETS = 256  # that one process may have: see jail.py


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: none can get out of sight."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, *(ctypes.c_ulong(value) for value in (1, 0, 0, 0)))


def of(pid: int) -> list[int]:
    found: list[int] = []
    left = [pid]
    while left:
        children = _children(left.pop())
        found += children
        left += children
    return found


def memory(pids: list[int]) -> int:
    """The bytes that these processes hold and that are no file's; what two of them share counts twice."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", "rb") as facts:
                total += sum(int(line.split()[1]) for line in facts if line.startswith((b"RssAnon:", b"RssShmem:")))
        except OSError:
            continue  # it ended meanwhile
    return total << 10


def detached() -> int:
    """The bytes of shared memory, messages and semaphores in our own namespace that belong to no process."""
    total = 0
    for name, column, weight in (("shm", 14, 1), ("msg", 3, 1), ("sem", 3, 128)):
        try:
            with open(f"/proc/sysvipc/{name}", "rb") as facts:
                total += sum(int(line.split()[column]) * weight for line in facts.readlines()[1:])
        except (OSError, IndexError, ValueError):
            continue  # this system does not tell
    return total


def nameless(pids: list[int], counted_device: int = -1) -> int:
    """The bytes of files that these processes hold open and that no folder holds: removed ones, or those in memory.

    Those of `counted_device` are left out: it is known how full that is.
    """
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                facts = os.stat(f"/proc/{pid}/fd/{number}")
                if stat.S_ISREG(facts.st_mode) and not facts.st_nlink and facts.st_dev != counted_device:
                    sizes[facts.st_dev, facts.st_ino] = facts.st_blocks * 512
        except OSError:
            continue  # it ended meanwhile, or is not ours to look into
    return sum(sizes.values())


def socket_buffers(pids: list[int]) -> int:
    """The bytes that the buffers of these processes' sockets may hold at most, beyond those of one process.

    The kernel counts them as nobody's memory where there is no cgroup.
    """
    sockets: set[tuple[int, int]] = set()
    for pid in pids:
        try:
            for number in os.listdir(f"/proc/{pid}/fd"):
                facts = os.stat(f"/proc/{pid}/fd/{number}")
                if stat.S_ISSOCK(facts.st_mode):
                    sockets.add((facts.st_dev, facts.st_ino))
        except OSError:
            continue  # it ended meanwhile, or is not ours to look into
    return max(0, len(sockets) - _FREE_SOCKETS) * _largest_buffer()


def _largest_buffer() -> int:
    try:
        with open("/proc/sys/net/core/wmem_max", "rb") as setting:
            return 2 * int(setting.read())  # the kernel doubles what a program asks for
    except (OSError, ValueError):
        return 1 << 19


def memory_folder(pids: list[int], path: str) -> tuple[int, int, bool]:
    """The device of the tmpfs that these processes see at `path`, its bytes in use, and whether it has no room for one
    more file. A device of -1: none is seen."""
    try:
        outside = os.stat(path).st_dev
    except OSError:
        outside = -1
    for pid in pids:
        try:
            inside = f"/proc/{pid}/root{path}"
            device, facts = os.stat(inside).st_dev, os.statvfs(inside)
        except OSError:
            continue  # it ended meanwhile, or has another root
        if device != outside:
            return device, (facts.f_blocks - facts.f_bfree) * facts.f_frsize, not facts.f_ffree
    return -1, 0, False


def end_all(first: int) -> None:
    """Kill every child of this process, the first too, until none is left; those of a child become ours as it ends."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in of(os.getpid()) or [first]:  # without a /proc there is only the first to be known
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(0.001)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as children:
                found += map(int, children.read().split())
    except OSError:
        pass  # it ended meanwhile
    return found
