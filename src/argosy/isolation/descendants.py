"""Lists, measures and kills all descendants of a process, including daemonized ones.

In: a pid. Out: the pids of its descendants and their memory; or their end. Never: touches another process.
"""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys
import time

_SET_CHILD_SUBREAPER = 36
_KILL_TIMEOUT_SECONDS = 5.0
_UNCOUNTED_SOCKETS = 256  # not counted: the open-file limit of one process, see process_confinement.py


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, so that none escapes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, *(ctypes.c_ulong(value) for value in (1, 0, 0, 0)))


def list_descendants(pid: int) -> list[int]:
    pids: list[int] = []
    pending = [pid]
    while pending:
        children = _list_children(pending.pop())
        pids += children
        pending += children
    return pids


def measure_memory(pids: list[int]) -> int:
    """Return the bytes of anonymous and shared memory of these processes; memory shared by two counts twice."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/status", "rb") as facts:
                total += sum(int(line.split()[1]) for line in facts if line.startswith((b"RssAnon:", b"RssShmem:")))
        except OSError:
            continue  # it has ended
    return total << 10


def measure_detached_ipc() -> int:
    """Return the bytes of System V shared memory, messages and semaphores in our namespace; no process owns them."""
    total = 0
    for name, column, weight in (("shm", 14, 1), ("msg", 3, 1), ("sem", 3, 128)):
        try:
            with open(f"/proc/sysvipc/{name}", "rb") as facts:
                total += sum(int(line.split()[column]) * weight for line in facts.readlines()[1:])
        except (OSError, IndexError, ValueError):
            continue  # not available on this system
    return total


def measure_nameless_files(pids: list[int], counted_device: int = -1) -> int:
    """Return the bytes of open files of these processes that have no name: removed files and memfds.

    Files of `counted_device` are not counted: its usage is measured separately.
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


def measure_socket_buffers(pids: list[int]) -> int:
    """Return the maximum bytes in the socket buffers of these processes, beyond the sockets of one process.

    Without a cgroup, the kernel does not count them as memory of a process.
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
    return max(0, len(sockets) - _UNCOUNTED_SOCKETS) * _read_max_socket_buffer()


def _read_max_socket_buffer() -> int:
    try:
        with open("/proc/sys/net/core/wmem_max", "rb") as setting:
            return 2 * int(setting.read())  # the kernel doubles the requested size
    except (OSError, ValueError):
        return 1 << 19


def inspect_tmpfs(pids: list[int], path: str) -> tuple[int, int, bool]:
    """Return the device of the tmpfs that these processes see at `path`, its bytes in use, and whether it has no free
    inodes. Device -1: there is no tmpfs."""
    try:
        outside_device = os.stat(path).st_dev
    except OSError:
        outside_device = -1
    for pid in pids:
        try:
            visible_path = f"/proc/{pid}/root{path}"
            device, facts = os.stat(visible_path).st_dev, os.statvfs(visible_path)
        except OSError:
            continue  # it has ended, or has another root
        if device != outside_device:
            return device, (facts.f_blocks - facts.f_bfree) * facts.f_frsize, not facts.f_ffree
    return -1, 0, False


def kill_all(first_child: int) -> None:
    """Kill every child of this process until none is left; orphaned descendants become children and are killed too."""
    deadline = time.monotonic() + _KILL_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for pid in list_descendants(os.getpid()) or [first_child]:  # without /proc only the first child is known
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(0.001)


def _list_children(pid: int) -> list[int]:
    pids: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", "rb") as children:
                pids += map(int, children.read().split())
    except OSError:
        pass  # it has ended
    return pids
