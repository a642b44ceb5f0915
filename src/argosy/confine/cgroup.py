"""A cgroup for each run, where this process may make one: the kernel then counts all memory, and all processes.

In: this process's own cgroup (version 2), and limits. Out: a cgroup below it that a run enters. Never: fails where
there is none; moves a process that is not ours; leaves a cgroup behind, also of a launcher that was killed.
"""

from __future__ import annotations

import errno
import os
import time

from argosy.confine import descendants

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTROLLERS = {"memory", "pids"}
_PREFIX = "argosy-run-"
_LEAF = "argosy-processes"  # where this process goes: a cgroup that limits others must hold no process itself
_KERNEL_MEMORY = 16 << 20  # page tables and the like, beside what a run is given
_REMOVE_SECONDS = 1.0


def find_parent(mounts: str = "/proc/self/mountinfo", membership: str = "/proc/self/cgroup") -> str:
    """Return a cgroup below which runs can have theirs, or nothing. Removes what a killed launcher left there."""
    own = _find_own(mounts, membership)
    if not own:
        return ""
    for parent in (os.path.dirname(own), own) if os.path.basename(own) == _LEAF else (own,):
        if _is_delegated(parent) and _enable(parent):
            _remove_stale(parent)
            return parent
    return ""


def make(parent: str, needs: Mapping[str, int], scratch: int) -> str:
    """Make a cgroup for one run; `scratch` is the size of its tmpfs, which counts as memory. Raises OSError."""
    path = os.path.join(parent, f"{_PREFIX}{os.getpid()}-{time.monotonic_ns()}")
    os.mkdir(path)
    try:
        _write(path, "memory.max", str(needs["memory"] + scratch + _KERNEL_MEMORY))
        _write(path, "pids.max", str(needs["processes"] + 2))  # the first process of a numbering, and one of ours
        for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            if os.path.exists(os.path.join(path, name)):  # not every kernel has them
                _write(path, name, value)
    except OSError:
        os.rmdir(path)
        raise
    return path


def enter(path: str) -> None:
    """Move this process into the cgroup; what it starts from now on is in there, too. Raises OSError."""
    _write(path, "cgroup.procs", "0")


def was_out_of_memory(path: str) -> bool:
    """True if the kernel ended a process of the run because the run used too much memory."""
    try:
        events = dict(line.split() for line in _read(path, "memory.events").splitlines())
        return int(events.get("oom_kill", "0")) > 0
    except (OSError, ValueError):
        return False


def remove(path: str) -> None:
    """End what is left in the cgroup, and remove it; that takes a moment after its last process ended."""
    end = time.monotonic() + _REMOVE_SECONDS
    while True:
        try:
            os.rmdir(path)
            return
        except FileNotFoundError:
            return
        except OSError as problem:
            if problem.errno != errno.EBUSY or time.monotonic() > end:
                return
        _kill(path)
        time.sleep(0.001)


def _find_own(mounts: str, membership: str) -> str:
    """The folder of this process's cgroup, or nothing where there is no version 2 or it is not mounted."""
    try:
        with open(membership) as file:
            inside = next((line.strip()[3:] for line in file if line.startswith("0::")), "")
        with open(mounts) as file:
            lines = [line.split() for line in file]
    except OSError:
        return ""
    for words in lines:
        # number, parent, device, root, mount point, options, optional fields, "-", type, ...
        if "-" in words and words[words.index("-") + 1] == "cgroup2" and inside:
            root = words[3].rstrip("/")
            below = inside[len(root) :] if f"{inside}/".startswith(f"{root}/") else inside
            return os.path.normpath(words[4] + below)
    return ""


def _is_delegated(path: str) -> bool:
    try:
        controllers = set(_read(path, "cgroup.controllers").split())
    except OSError:
        return False
    writable = (path, os.path.join(path, "cgroup.procs"), os.path.join(path, "cgroup.subtree_control"))
    return controllers >= _CONTROLLERS and all(os.access(place, os.W_OK) for place in writable)


def _enable(path: str) -> bool:
    """Give the cgroup's children the controllers that limit them."""
    try:
        if set(_read(path, "cgroup.subtree_control").split()) >= _CONTROLLERS:
            return True
        try:
            _write(path, "cgroup.subtree_control", "+memory +pids")
        except OSError as problem:
            if problem.errno != errno.EBUSY or not _make_way(path):
                return False
            _write(path, "cgroup.subtree_control", "+memory +pids")
        return True
    except OSError:
        return False


def _make_way(path: str) -> bool:
    """Move all processes of the cgroup one level down, if they are ours alone."""
    pids = {int(word) for word in _read(path, "cgroup.procs").split()}
    if not pids <= {os.getpid(), *descendants.of(os.getpid())}:
        return False
    leaf = os.path.join(path, _LEAF)
    os.makedirs(leaf, exist_ok=True)
    for pid in pids:
        _write(leaf, "cgroup.procs", str(pid))
    return True


def _remove_stale(parent: str) -> None:
    """Remove the cgroups of launchers that were killed."""
    for name in os.listdir(parent):
        pid = name.removeprefix(_PREFIX).partition("-")[0]
        if name.startswith(_PREFIX) and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            remove(os.path.join(parent, name))


def _kill(path: str) -> None:
    try:
        _write(path, "cgroup.kill", "1")
    except OSError:
        pass  # before Linux 5.14; the launcher ends its processes itself


def _read(path: str, name: str) -> str:
    with open(os.path.join(path, name)) as file:
        return file.read()


def _write(path: str, name: str, value: str) -> None:
    number = os.open(os.path.join(path, name), os.O_WRONLY)
    try:
        os.write(number, value.encode())
    finally:
        os.close(number)
