"""The launcher process: starts a program confined, enforces its limits, and kills all of its processes at the end.

In: one order on a socket. Out: the confinement in force, then how the program ended. Never: outlives its parent;
leaves a process behind; runs code of the program itself.
"""

from __future__ import annotations

import marshal
import os
import select
import signal
import sys
import time

from argosy.isolation import cgroup, cpu_priority, descendants, landlock, requirement, restrictions, rootfs

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from typing import Any, NoReturn

_LENGTH = 8
_LOOK = 0.1  # seconds between two checks of the program's usage
_MOST_FILES = 100_000
_EXITING = 4  # the kernel's PF_EXITING
_BEYOND = 1 << 16  # bytes of a scratch tmpfs above its limit
_OURS = 2  # our processes in a user's namespace: the launcher, and the init of the PID namespace


class _NotConfined(Exception):
    """A required protection is not in force."""


def main(control: int) -> NoReturn:
    """Entry point of the process. Everything ends when the parent closes the socket."""
    # marshal: both sides run the same Python, and it is already imported.
    order = marshal.loads(_receive(control, int.from_bytes(_receive(control, _LENGTH), "big")))  # noqa: S302
    ours, theirs = os.pipe()
    users = order["users"] = rootfs.make_users() if os.geteuid() == 0 else None
    order["needs"]["tasks"] = restrictions.count_tasks() if users is None else 0
    order["before"] = sum(map(_written, order.get("counted") or ()))
    descendants.adopt_orphans()
    _make_cgroup(order)
    alone = order["alone"] = _leave_processes(order)
    entered, entering = os.pipe()
    child = os.fork()
    if child == 0:
        _enter_cgroup(order, entering)
        os.close(entered)
        os.close(control)
        os.close(ours)
        _be_first(order, theirs) if alone else _become_program(order, theirs)
    os.close(theirs)
    os.close(entering)
    order["is_in_cgroup"] = bool(os.read(entered, 1))
    for number in range(3):
        os.close(number)  # else the output would stay open after the program ended
    limit = _watch(order, control, child)
    ended = {} if limit else _wait_for(child)
    descendants.end_all(child)
    limit = limit or _find_late_excess(order)
    if order["cgroup"]:
        cgroup.remove(order["cgroup"])
    if os.getppid() != order["parent"] or _is_ending(order["parent"]):
        _remove(order["leftovers"])
    report = {"limit": limit, **ended}
    with os.fdopen(ours, "rb") as said:
        while True:
            try:
                report.update([marshal.load(said)])  # noqa: S302
            except EOFError:
                break
    try:
        os.write(control, marshal.dumps(report))
    except OSError:
        pass  # the parent has ended
    os._exit(0)


def _is_ending(pid: int) -> bool:
    """True if the process is exiting: a killed parent closes its sockets before it stops being our parent."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as facts:
            words = facts.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return words[0] in (b"Z", b"X") or bool(int(words[6]) & _EXITING)


def _remove(folders: list[str]) -> None:
    """Remove folders that the parent could not remove because it was killed."""
    from shutil import rmtree

    for folder in folders:
        rmtree(folder, ignore_errors=True)


def _make_cgroup(order: dict[str, Any]) -> None:
    """Create the cgroup, before the user namespace changes: another user may not write there."""
    order["cgroup"], order["cgroup_lock"] = "", -1
    if order.get("cgroup_parent"):
        try:
            made = cgroup.make(order["cgroup_parent"], order["needs"], order.get("memory_folder") or 0)
            order["cgroup"], order["cgroup_lock"] = made
        except OSError:
            pass  # rlimits still apply; the report says that there is no cgroup


def _enter_cgroup(order: dict[str, Any], entering: int) -> None:
    """Enter the cgroup and tell the launcher with a byte: without a cgroup it measures more itself."""
    order["is_in_cgroup"] = False
    if order["cgroup"]:
        try:
            cgroup.enter(order["cgroup"])
            order["is_in_cgroup"] = True
            os.write(entering, b"1")
        except OSError:
            pass
        os.close(order["cgroup_lock"])  # only the launcher holds it: the lock shows that the launcher lives
    os.close(entering)


def _find_late_excess(order: dict[str, Any]) -> str:
    """Return the limit that the program exceeded between the last check and its end."""
    if order["is_in_cgroup"] and cgroup.was_out_of_memory(order["cgroup"]):
        return "memory"
    return "scratch" if _written_by(order) > order["needs"]["scratch"] else ""


def _leave_processes(order: dict[str, Any]) -> bool:
    """Unshare the PID namespace; True if the next child is the init of a new one."""
    order["offline"] = order["apart"] = False
    if sys.platform != "linux":
        return False
    if os.geteuid() == 0:
        return rootfs.leave(rootfs.NEW_PIDS)
    order["apart"] = rootfs.leave_as_user(network=not order.get("ports"))
    order["offline"] = order["apart"] and not order.get("ports")
    if order["apart"] and rootfs.counts_users_apart():
        order["needs"]["tasks"] = _OURS
    return bool(order["apart"])


def _wait_for(child: int) -> dict[str, Any]:
    _, status, usage = os.wait4(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "cpu": usage.ru_utime + usage.ru_stime}


def _receive(control: int, length: int) -> bytes:
    data = b""
    while len(data) < length:
        more = os.read(control, length - len(data))
        if not more:
            os._exit(1)  # the parent has ended
        data += more
    return data


def _be_first(order: dict[str, Any], report: int) -> NoReturn:
    """Run as init of the PID namespace: when it ends, the kernel kills all other processes in it."""
    restrictions.die_with(0)  # the parent's pid is not visible in this namespace
    if not _has_reader(report):
        os._exit(1)  # the launcher ended before the call above
    child = os.fork()
    if child == 0:
        _become_program(order, report)
    for number in range(3):
        os.close(number)
    while (ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)) and ended.si_pid != child:
        os.waitpid(ended.si_pid, 0)
    for name, value in _wait_for(child).items():
        _say(report, name, value)
    os._exit(0)


def _has_reader(pipe: int) -> bool:
    poller = select.poll()
    poller.register(pipe, 0)
    return not any(event & select.POLLERR for _, event in poller.poll(0))


def _become_program(order: dict[str, Any], report: int) -> NoReturn:
    try:
        missing: list[str] = []
        restrictions.die_first_when_memory_is_short()  # while /proc is visible
        offline = _leave_network_and_files(order, missing)
        abi = landlock.abi()
        rules = _rules(order, abi)
        force = restrictions.enter_as_program(
            os.getppid(), needs=order["needs"], rules=rules, abi=abi, offline=offline, own_root=order["own_root"],
            has_ports=bool(order.get("ports")), needs_unix_sockets=bool(order.get("needs_unix_sockets")),
            shares_ipc=order["shares_ipc"], users=order["users"], missing=missing,
        )  # fmt: skip
        force.update(own_root=order["own_root"], cgroup=order["is_in_cgroup"], scratch_tmpfs=order["has_memory_folder"])
        force["optional_missing"] = _find_optional_missing(order)
        if order.get("required", True) and (lacking := requirement.find_lacking(force)):
            raise _NotConfined(requirement.render_refusal(lacking))
        os.chdir(order["folder"])
        _say(report, "confinement", force)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
            signal.signal(number, signal.SIG_DFL)
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except _NotConfined as problem:
        _say(report, "unconfined", str(problem))
    except OSError as problem:
        _say(report, "refused", f"{problem.strerror}: {problem.filename or order['argv'][0]}")
    except BaseException as problem:
        _say(report, "refused", f"{type(problem).__name__}: {problem}")
    finally:
        os._exit(127)


def _leave_network_and_files(order: dict[str, Any], missing: list[str]) -> bool:
    """Enter an empty network and an own root folder, if allowed; True if the network is empty now."""
    offline = order["offline"] or (not order.get("ports") and restrictions.leave_network())
    order["shares_ipc"] = not (offline or order["apart"] or (os.geteuid() == 0 and rootfs.leave(rootfs.NEW_IPC)))
    if not order["shares_ipc"]:
        restrictions.close_shared_memory()
    mounts, extras = order.get("mounts") or [], order.get("extras") or []
    order["own_root"] = order["has_memory_folder"] = False
    if offline or order["apart"] or os.geteuid() == 0:
        try:
            if not rootfs.leave(rootfs.NEW_NAMES):
                raise PermissionError("not allowed")
            seen, shown = [*order["readable"], *order["runnable"]], [*mounts, *extras]
            options = _memory_folder(order)
            order["has_memory_folder"] = rootfs.move_in(order["room"], seen, order["writable"], shown, options)
            for _, name, read_only in (*mounts, *extras):
                which = "readable" if read_only else "writable"
                order[which] = [*order[which], name]
            order["own_root"] = True
            return offline
        except OSError as problem:
            missing.append(f"files: no root folder of its own ({problem})")
    if mounts:
        raise PermissionError(1, f"no folder can be mounted on this machine ({'; '.join(missing)})", mounts[0][1])
    return offline


def _memory_folder(order: dict[str, Any]) -> tuple[str, str] | None:
    """Return the scratch folder and the mount options of its tmpfs; None if the caller supplied the folder."""
    if not order.get("memory_folder"):
        return None
    user, group = (restrictions.NOBODY, restrictions.NOBODY) if os.geteuid() == 0 else (os.getuid(), os.getgid())
    # A little more than the limit, so that usage above the limit is visible.
    size = order["memory_folder"] + _BEYOND
    return order["scratch"], f"size={size},nr_inodes={_MOST_FILES},mode=700,uid={user},gid={group}"


def _find_optional_missing(order: dict[str, Any]) -> list[str]:
    missing = []
    if not order["is_in_cgroup"]:
        missing.append("cgroup: cannot be created here; rlimits and checks of /proc limit memory and processes")
    if order.get("memory_folder") and not order["has_memory_folder"]:
        missing.append("scratch: no tmpfs can be mounted here; checks of the folder limit its size")
    return missing


def _rules(order: dict[str, Any], abi: int) -> int | None:
    if not abi:
        return None
    return landlock.ruleset(
        order["readable"], abi, runnable=order["runnable"], writable=order["writable"], ports=order.get("ports") or ()
    )


def _say(report: int, name: str, value: Any) -> None:
    os.write(report, marshal.dumps((name, value)))


def _watch(order: dict[str, Any], control: int, child: int) -> str:
    """Watch until the program ends; return the exceeded limit, "gone" if the parent has ended, or ""."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    if hasattr(os, "pidfd_open"):
        poller.register(os.pidfd_open(child), select.POLLIN)
    wait = 0.01
    started = looked = time.monotonic()
    has_priority = not order.get("is_resident")
    while True:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return ""
        for number, _ in poller.poll(wait * 1000):
            if number == control and _hangs_up(control):
                return "gone"
            if number == control:
                _ask_to_end(child, order["alone"])
        if has_priority and time.monotonic() - started >= cpu_priority.LONG_SECONDS:
            has_priority = not _lower_priority()
        if time.monotonic() - looked >= wait:
            began = time.monotonic()
            if found := _excess(order):
                return found
            looked = time.monotonic()
            wait = max(order.get("look", _LOOK), 10 * (looked - began))  # counting many files takes long


def _lower_priority() -> bool:
    """Lower the program's priority; False if it has not started yet and has no process group of its own."""
    groups = set()
    for pid in descendants.of(os.getpid()):
        try:
            groups.add(os.getpgid(pid))
        except ProcessLookupError:
            continue
    groups.discard(os.getpgrp())
    cpu_priority.lower_groups(groups)
    if groups:
        cpu_priority.lower_session()
    return bool(groups)


def _hangs_up(control: int) -> bool:
    """True if the parent closed the socket; a byte is a request to terminate the program."""
    try:
        return not os.read(control, 1)
    except OSError:
        return True


def _ask_to_end(child: int, alone: bool) -> None:
    """Send SIGTERM to the program; with a PID namespace it is the child of the init process, which ignores it."""
    for pid in descendants.of(child)[:1] if alone else [child]:
        try:
            os.kill(pid, signal.SIGTERM)
        except (ProcessLookupError, PermissionError):
            continue


def _excess(order: dict[str, Any]) -> str:
    ours = descendants.of(os.getpid())
    loose = descendants.detached() if order["apart"] else 0  # as root it is disabled: see restrictions.py
    if not order["is_in_cgroup"]:
        loose += descendants.socket_buffers(ours)
    if descendants.memory(ours) + loose > order["needs"]["memory"]:
        return "memory"
    device, used, is_full = -1, 0, False
    if order.get("memory_folder"):
        device, used, is_full = descendants.memory_folder(ours, order["scratch"])
    if is_full or _written_by(order) + used + descendants.nameless(ours, device) > order["needs"]["scratch"]:
        return "scratch"
    return ""


def _written_by(order: dict[str, Any]) -> int:
    before: int = order["before"]
    return _written(order["scratch"]) + sum(map(_written, order.get("counted") or ())) - before


def _written(folder: str) -> int:
    """Return the bytes of all files below the folder; an unreadable folder counts as too much."""
    total, entries, left = 0, 0, [folder]
    while left:
        try:
            with os.scandir(left.pop()) as found:
                for entry in found:
                    entries += 1
                    total += _blocks(entry)
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError:
            return sys.maxsize  # not accessible, or deeper than a path can be
        if entries > _MOST_FILES:
            return sys.maxsize
    return total


def _blocks(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0  # removed meanwhile; the other entries still count
