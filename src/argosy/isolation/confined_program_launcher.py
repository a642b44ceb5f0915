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

from argosy.isolation import (
    cgroup,
    confinement_requirement,
    cpu_priority,
    descendants,
    landlock,
    process_confinement,
    rootfs,
)

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from typing import Any, NoReturn

_LENGTH_BYTES = 8
_USAGE_CHECK_SECONDS = 0.1  # seconds between two checks of the program's usage
_MAX_FILES = 100_000
_EXITING = 4  # the kernel's PF_EXITING
_TMPFS_SLACK_BYTES = 1 << 16  # bytes of a scratch tmpfs above its limit
_OWN_PROCESSES = 2  # our processes in a user's namespace: the launcher, and the init of the PID namespace


class _ConfinementMissing(Exception):
    """A required protection is not in force."""


def main(control: int) -> NoReturn:
    """Entry point of the process. Everything ends when the parent closes the socket."""
    # marshal: both sides run the same Python, and it is already imported.
    order = marshal.loads(_receive(control, int.from_bytes(_receive(control, _LENGTH_BYTES), "big")))  # noqa: S302
    report_reader, report_writer = os.pipe()
    users = order["users"] = rootfs.create_user_namespace() if os.geteuid() == 0 else None
    order["needs"]["tasks"] = process_confinement.count_user_tasks() if users is None else 0
    order["before"] = sum(map(_measure_folder, order.get("counted") or ()))
    descendants.adopt_orphans()
    _create_cgroup(order)
    has_own_pids = order["alone"] = _enter_pid_namespace(order)
    entered, entering = os.pipe()
    child = os.fork()
    if child == 0:
        _enter_cgroup(order, entering)
        os.close(entered)
        os.close(control)
        os.close(report_reader)
        _run_as_init(order, report_writer) if has_own_pids else _become_program(order, report_writer)
    os.close(report_writer)
    os.close(entering)
    order["is_in_cgroup"] = bool(os.read(entered, 1))
    for number in range(3):
        os.close(number)  # else the output would stay open after the program ended
    limit = _enforce_limits(order, control, child)
    exit_facts = {} if limit else _wait_for(child)
    descendants.kill_all(child)
    limit = limit or _find_late_excess(order)
    if order["cgroup"]:
        cgroup.remove(order["cgroup"])
    if os.getppid() != order["parent"] or _is_exiting(order["parent"]):
        _remove_folders(order["leftovers"])
    report = {"limit": limit, **exit_facts}
    with os.fdopen(report_reader, "rb") as report_file:
        while True:
            try:
                report.update([marshal.load(report_file)])  # noqa: S302
            except EOFError:
                break
    try:
        os.write(control, marshal.dumps(report))
    except OSError:
        pass  # the parent has ended
    os._exit(0)


def _is_exiting(pid: int) -> bool:
    """True if the process is exiting: a killed parent closes its sockets before it stops being our parent."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as facts:
            words = facts.read().rpartition(b")")[2].split()
    except OSError:
        return False
    return words[0] in (b"Z", b"X") or bool(int(words[6]) & _EXITING)


def _remove_folders(folders: list[str]) -> None:
    """Remove folders that the parent could not remove because it was killed."""
    from shutil import rmtree

    for folder in folders:
        rmtree(folder, ignore_errors=True)


def _create_cgroup(order: dict[str, Any]) -> None:
    """Create the cgroup, before the user namespace changes: another user may not write there."""
    order["cgroup"], order["cgroup_lock"] = "", -1
    if order.get("cgroup_parent"):
        try:
            created = cgroup.create(order["cgroup_parent"], order["needs"], order.get("memory_folder") or 0)
            order["cgroup"], order["cgroup_lock"] = created
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
    return "scratch" if _measure_scratch(order) > order["needs"]["scratch"] else ""


def _enter_pid_namespace(order: dict[str, Any]) -> bool:
    """Unshare the PID namespace; True if the next child is the init of a new one."""
    order["offline"] = order["apart"] = False
    if sys.platform != "linux":
        return False
    if os.geteuid() == 0:
        return rootfs.unshare(rootfs.CLONE_NEWPID)
    order["apart"] = rootfs.enter_user_namespace(network=not order.get("ports"))
    order["offline"] = order["apart"] and not order.get("ports")
    if order["apart"] and rootfs.has_process_limit_per_namespace():
        order["needs"]["tasks"] = _OWN_PROCESSES
    return bool(order["apart"])


def _wait_for(child: int) -> dict[str, Any]:
    _, status, usage = os.wait4(child, 0)
    return {"code": os.waitstatus_to_exitcode(status), "cpu": usage.ru_utime + usage.ru_stime}


def _receive(control: int, length: int) -> bytes:
    data = b""
    while len(data) < length:
        chunk = os.read(control, length - len(data))
        if not chunk:
            os._exit(1)  # the parent has ended
        data += chunk
    return data


def _run_as_init(order: dict[str, Any], report: int) -> NoReturn:
    """Run as init of the PID namespace: when it ends, the kernel kills all other processes in it."""
    process_confinement.exit_with_parent(0)  # the parent's pid is not visible in this namespace
    if not _has_reader(report):
        os._exit(1)  # the launcher ended before the call above
    child = os.fork()
    if child == 0:
        _become_program(order, report)
    for number in range(3):
        os.close(number)
    while (exited := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)) and exited.si_pid != child:
        os.waitpid(exited.si_pid, 0)
    for name, value in _wait_for(child).items():
        _write_report(report, name, value)
    os._exit(0)


def _has_reader(pipe: int) -> bool:
    poller = select.poll()
    poller.register(pipe, 0)
    return not any(event & select.POLLERR for _, event in poller.poll(0))


def _become_program(order: dict[str, Any], report: int) -> NoReturn:
    try:
        missing: list[str] = []
        process_confinement.prefer_oom_kill()  # while /proc is visible
        offline = _enter_root_and_empty_network(order, missing)
        abi = landlock.find_abi_version()
        rules = _build_rules(order, abi)
        force = process_confinement.confine_program(
            os.getppid(), needs=order["needs"], rules=rules, abi=abi, offline=offline, own_root=order["own_root"],
            has_ports=bool(order.get("ports")), needs_unix_sockets=bool(order.get("needs_unix_sockets")),
            shares_ipc=order["shares_ipc"], users=order["users"], missing=missing,
        )  # fmt: skip
        force.update(own_root=order["own_root"], cgroup=order["is_in_cgroup"], scratch_tmpfs=order["has_memory_folder"])
        force["optional_missing"] = _find_optional_missing(order)
        if order.get("required", True) and (lacking := confinement_requirement.find_missing_protections(force)):
            raise _ConfinementMissing(confinement_requirement.render_refusal(lacking))
        os.chdir(order["folder"])
        _write_report(report, "confinement", force)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
            signal.signal(number, signal.SIG_DFL)
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606
    except _ConfinementMissing as problem:
        _write_report(report, "unconfined", str(problem))
    except OSError as problem:
        _write_report(report, "refused", f"{problem.strerror}: {problem.filename or order['argv'][0]}")
    except BaseException as problem:
        _write_report(report, "refused", f"{type(problem).__name__}: {problem}")
    finally:
        os._exit(127)


def _enter_root_and_empty_network(order: dict[str, Any], missing: list[str]) -> bool:
    """Enter an empty network and an own root folder, if allowed; True if the network is empty now."""
    offline = order["offline"] or (not order.get("ports") and process_confinement.enter_empty_network())
    order["shares_ipc"] = not (offline or order["apart"] or (os.geteuid() == 0 and rootfs.unshare(rootfs.CLONE_NEWIPC)))
    if not order["shares_ipc"]:
        process_confinement.disable_shared_memory()
    mounts, extras = order.get("mounts") or [], order.get("extras") or []
    order["own_root"] = order["has_memory_folder"] = False
    if offline or order["apart"] or os.geteuid() == 0:
        try:
            if not rootfs.unshare(rootfs.CLONE_NEWNS):
                raise PermissionError("not allowed")
            readable, all_mounts = [*order["readable"], *order["runnable"]], [*mounts, *extras]
            options = _build_tmpfs_options(order)
            order["has_memory_folder"] = rootfs.enter_root(
                order["room"], readable, order["writable"], all_mounts, options
            )
            for _, name, read_only in (*mounts, *extras):
                access = "readable" if read_only else "writable"
                order[access] = [*order[access], name]
            order["own_root"] = True
            return offline
        except OSError as problem:
            missing.append(f"files: no root folder of its own ({problem})")
    if mounts:
        raise PermissionError(1, f"no folder can be mounted on this machine ({'; '.join(missing)})", mounts[0][1])
    return offline


def _build_tmpfs_options(order: dict[str, Any]) -> tuple[str, str] | None:
    """Return the scratch folder and the mount options of its tmpfs; None if the caller supplied the folder."""
    if not order.get("memory_folder"):
        return None
    user, group = (
        (process_confinement.NOBODY_ID, process_confinement.NOBODY_ID)
        if os.geteuid() == 0
        else (os.getuid(), os.getgid())
    )
    # A little more than the limit, so that usage above the limit is visible.
    size = order["memory_folder"] + _TMPFS_SLACK_BYTES
    return order["scratch"], f"size={size},nr_inodes={_MAX_FILES},mode=700,uid={user},gid={group}"


def _find_optional_missing(order: dict[str, Any]) -> list[str]:
    missing = []
    if not order["is_in_cgroup"]:
        missing.append("cgroup: cannot be created here; rlimits and checks of /proc limit memory and processes")
    if order.get("memory_folder") and not order["has_memory_folder"]:
        missing.append("scratch: no tmpfs can be mounted here; checks of the folder limit its size")
    return missing


def _build_rules(order: dict[str, Any], abi: int) -> int | None:
    if not abi:
        return None
    return landlock.build_ruleset(
        order["readable"], abi, runnable=order["runnable"], writable=order["writable"], ports=order.get("ports") or ()
    )


def _write_report(report: int, name: str, value: Any) -> None:
    os.write(report, marshal.dumps((name, value)))


def _enforce_limits(order: dict[str, Any], control: int, child: int) -> str:
    """Watch until the program ends; return the exceeded limit, "gone" if the parent has ended, or ""."""
    poller = select.poll()
    poller.register(control, select.POLLIN)
    if hasattr(os, "pidfd_open"):
        poller.register(os.pidfd_open(child), select.POLLIN)
    interval = 0.01
    started = checked_at = time.monotonic()
    has_priority = not order.get("is_resident")
    while True:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return ""
        for number, _ in poller.poll(interval * 1000):
            if number == control and _is_hung_up(control):
                return "gone"
            if number == control:
                _terminate(child, order["alone"])
        if has_priority and time.monotonic() - started >= cpu_priority.LONG_SECONDS:
            has_priority = not _lower_priority()
        if time.monotonic() - checked_at >= interval:
            check_started_at = time.monotonic()
            if exceeded := _find_excess(order):
                return exceeded
            checked_at = time.monotonic()
            # Counting many files takes long.
            interval = max(order.get("look", _USAGE_CHECK_SECONDS), 10 * (checked_at - check_started_at))


def _lower_priority() -> bool:
    """Lower the program's priority; False if it has not started yet and has no process group of its own."""
    groups = set()
    for pid in descendants.list_descendants(os.getpid()):
        try:
            groups.add(os.getpgid(pid))
        except ProcessLookupError:
            continue
    groups.discard(os.getpgrp())
    cpu_priority.lower_group_priorities(groups)
    if groups:
        cpu_priority.lower_session()
    return bool(groups)


def _is_hung_up(control: int) -> bool:
    """True if the parent closed the socket; a byte is a request to terminate the program."""
    try:
        return not os.read(control, 1)
    except OSError:
        return True


def _terminate(child: int, has_own_pids: bool) -> None:
    """Send SIGTERM to the program; with a PID namespace it is the child of the init process, which ignores it."""
    for pid in descendants.list_descendants(child)[:1] if has_own_pids else [child]:
        try:
            os.kill(pid, signal.SIGTERM)
        except (ProcessLookupError, PermissionError):
            continue


def _find_excess(order: dict[str, Any]) -> str:
    pids = descendants.list_descendants(os.getpid())
    # As root it is disabled: see process_confinement.py.
    uncounted_bytes = descendants.measure_detached_ipc() if order["apart"] else 0
    if not order["is_in_cgroup"]:
        uncounted_bytes += descendants.measure_socket_buffers(pids)
    if descendants.measure_memory(pids) + uncounted_bytes > order["needs"]["memory"]:
        return "memory"
    device, used, is_full = -1, 0, False
    if order.get("memory_folder"):
        device, used, is_full = descendants.inspect_tmpfs(pids, order["scratch"])
    if (
        is_full
        or _measure_scratch(order) + used + descendants.measure_nameless_files(pids, device) > order["needs"]["scratch"]
    ):
        return "scratch"
    return ""


def _measure_scratch(order: dict[str, Any]) -> int:
    before: int = order["before"]
    return _measure_folder(order["scratch"]) + sum(map(_measure_folder, order.get("counted") or ())) - before


def _measure_folder(folder: str) -> int:
    """Return the bytes of all files below the folder; an unreadable folder counts as too much."""
    total, entries, pending = 0, 0, [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as folder_entries:
                for entry in folder_entries:
                    entries += 1
                    total += _measure_entry(entry)
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed meanwhile
        except OSError:
            return sys.maxsize  # not accessible, or deeper than a path can be
        if entries > _MAX_FILES:
            return sys.maxsize
    return total


def _measure_entry(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0  # removed meanwhile; the other entries still count
