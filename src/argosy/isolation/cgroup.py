"""A cgroup for each run, if this process may create one: the kernel then limits all memory and processes of the run.

In: this process's own cgroup (version 2), and limits. Out: a cgroup below it that a run enters. Never: fails if cgroups
are not available; moves a process of another program; leaves a cgroup behind, even after a launcher was killed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from argosy.isolation import descendants

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTROLLERS = {"memory", "pids"}
_PREFIX = "argosy-run-"
# This process moves here: a cgroup with controllers for its children must have no process.
_PROCESSES_CGROUP = "argosy-processes"
_KERNEL_MEMORY_BYTES = 16 << 20  # bytes for page tables and similar, in addition to the limit of a run
_REMOVE_SECONDS = 1.0
_ATTEMPTS = 5


def find_delegated_parent(mounts: str = "/proc/self/mountinfo", membership: str = "/proc/self/cgroup") -> str:
    """Return a cgroup below which runs can have theirs, or "". Removes cgroups that a killed launcher left there."""
    own = _find_own(mounts, membership)
    if not own:
        return ""
    for parent in (os.path.dirname(own), own) if os.path.basename(own) == _PROCESSES_CGROUP else (own,):
        if _is_delegated(parent) and _enable_controllers(parent):
            _remove_stale(parent, _REMOVE_SECONDS)
            return parent
    return ""


def create(parent: str, needs: Mapping[str, int], scratch: int) -> tuple[str, int]:
    """Create a cgroup for one run; `scratch` is the size of its tmpfs, which counts as memory. Raises OSError.

    Returns its path, and a locked descriptor: other processes remove a cgroup without a lock.
    Also removes cgroups that a killed launcher left.
    """
    _remove_stale(parent, 0)
    for _ in range(_ATTEMPTS):
        path = os.path.join(parent, f"{_PREFIX}{os.getpid()}-{time.monotonic_ns()}")
        os.mkdir(path)
        lock = _lock(path)
        if lock is not None:
            break
    else:
        raise FileNotFoundError(errno.ENOENT, "each new cgroup was removed by another process", parent)
    try:
        _write(path, "memory.max", str(needs["memory"] + scratch + _KERNEL_MEMORY_BYTES))
        _write(path, "pids.max", str(needs["processes"] + 2))  # plus the init of the PID namespace, and one of ours
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            if os.path.exists(os.path.join(path, name)):  # not every kernel has them
                _write(path, name, value)
    except OSError:
        os.rmdir(path)
        os.close(lock)
        raise
    return path, lock


def enter(path: str) -> None:
    """Move this process into the cgroup; processes that it starts are in it too. Raises OSError."""
    _write(path, "cgroup.procs", "0")


def was_out_of_memory(path: str) -> bool:
    """True if the kernel killed a process because the run used too much memory.

    `oom_kill` alone also counts kills because the machine, or a parent cgroup, was out of memory.
    """
    try:
        events = dict(line.split() for line in _read(path, "memory.events").splitlines())
        return all(int(events.get(name, "0")) > 0 for name in ("oom", "oom_kill"))
    except (OSError, ValueError):
        return False


def remove(path: str, seconds: float = _REMOVE_SECONDS) -> None:
    """Kill the processes left in the cgroup and remove it; removal works only a moment after the last one ended."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.rmdir(path)
            return
        except FileNotFoundError:
            return
        except OSError as problem:
            if problem.errno != errno.EBUSY:
                return
        _kill(path)
        if time.monotonic() > deadline:
            return
        time.sleep(0.001)


def _find_own(mounts: str, membership: str) -> str:
    """Return the folder of this process's cgroup, or "" if cgroup version 2 is not available or not mounted."""
    try:
        with open(membership) as file:
            cgroup_path = next((line.strip()[3:] for line in file if line.startswith("0::")), "")
        with open(mounts) as file:
            lines = [line.split() for line in file]
    except OSError:
        return ""
    for words in lines:
        # number, parent, device, root, mount point, options, optional fields, "-", type, ...
        if "-" in words and words[words.index("-") + 1] == "cgroup2" and cgroup_path:
            root = words[3].rstrip("/")
            # Paths with ".." are outside this process's cgroup namespace: that mount is not its own.
            if f"{cgroup_path}/".startswith(f"{root}/") and ".." not in f"{root}{cgroup_path}".split("/"):
                return os.path.normpath(words[4] + cgroup_path[len(root) :])
    return ""


def _is_delegated(path: str) -> bool:
    try:
        controllers = set(_read(path, "cgroup.controllers").split())
    except OSError:
        return False
    writable = (path, os.path.join(path, "cgroup.procs"), os.path.join(path, "cgroup.subtree_control"))
    return controllers >= _CONTROLLERS and all(os.access(item, os.W_OK) for item in writable)


def _enable_controllers(path: str) -> bool:
    """Give the cgroup's children the controllers that limit them."""
    try:
        if set(_read(path, "cgroup.subtree_control").split()) >= _CONTROLLERS:
            return True
        for _ in range(_ATTEMPTS):  # a process may start between two steps
            try:
                _write(path, "cgroup.subtree_control", "+memory +pids")
                return True
            except OSError as problem:
                if problem.errno != errno.EBUSY or not _move_processes_down(path):
                    return False
    except OSError:
        pass
    return False


def _move_processes_down(path: str) -> bool:
    """Move all processes of the cgroup one level down, if all of them are ours."""
    pids = {int(word) for word in _read(path, "cgroup.procs").split()}
    if not pids <= {os.getpid(), *descendants.list_descendants(os.getpid())}:
        return False
    leaf = os.path.join(path, _PROCESSES_CGROUP)
    os.makedirs(leaf, exist_ok=True)
    for pid in pids:
        try:
            _write(leaf, "cgroup.procs", str(pid))
        except ProcessLookupError:
            continue  # it ended meanwhile
    return True


def _remove_stale(parent: str, seconds: float) -> None:
    """Remove cgroups of killed launchers. Their pids prove nothing: they may be from another PID namespace."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        path = os.path.join(parent, name)
        if name.startswith(_PREFIX) and name.removeprefix(_PREFIX).partition("-")[0].isdigit():
            lock = _lock(path)
            if lock is not None:
                remove(path, seconds)
                os.close(lock)


def _lock(path: str) -> int | None:
    """Lock a cgroup until the descriptor is closed; None if another process has locked or removed it."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.isdir(path):
            return lock
    except OSError:
        pass
    os.close(lock)
    return None


def _kill(path: str) -> None:
    try:
        _write(path, "cgroup.kill", "1")
    except OSError:
        pass  # before Linux 5.14; the launcher kills its processes itself


def _read(path: str, name: str) -> str:
    with open(os.path.join(path, name)) as file:
        return file.read()


def _write(path: str, name: str, value: str) -> None:
    descriptor = os.open(os.path.join(path, name), os.O_WRONLY)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
