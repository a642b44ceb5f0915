"""Applies restrictions to a new worker before its first call, and to a program before its first instruction.

In: limits, and a Landlock ruleset. Out: a report of the protections in force. Never: lifts a restriction.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys

from argosy.isolation import landlock, rootfs, seccomp, syscall_tables

TYPE_CHECKING = False  # as in __init__: programs wait for the imports here
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NOBODY_ID = 65534
_BITS = 8 * struct.calcsize("P")
_WORKER_OPEN_FILES, _PROGRAM_OPEN_FILES = 64, 256
_ADDRESS_SPACE_SLACK_BYTES = 4 << 30
_WRITE_FACTOR, _WRITE_SLACK_BYTES = 16, 4 << 20  # memory for encoding the answer: twice what orjson allocates
_PDEATHSIG, _SET_DUMPABLE, _SET_NO_NEW_PRIVS, _GET_NO_NEW_PRIVS = 1, 4, 38, 39
_CAPABILITIES_V3 = 0x20080522
_JOIN_SESSION_KEYRING = 1
_CLONE_NEWIPC, _CLONE_NEWNET = 0x08000000, 0x40000000
_SCOPED_ABI = 6  # the Landlock ABI that refuses abstract Unix sockets and signals


def exit_with_parent(parent: int) -> None:
    """End this process as soon as its parent ends, even by SIGKILL."""
    _prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call above
        os._exit(1)


def enter_empty_network() -> bool:
    """Move this process to an empty network and IPC namespace; requires root. Processes that it forks share it."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    return int(ctypes.CDLL(None).unshare(_CLONE_NEWNET | _CLONE_NEWIPC)) == 0


def disable_shared_memory() -> None:
    """Disable System V IPC in our own namespace: its memory belongs to no process and would not be counted."""
    limits = {"shmall": "0", "shmmni": "0", "msgmni": "0", "sem": "32 64 32 8"}
    for name, value in limits.items():
        try:
            with open(f"/proc/sys/kernel/{name}", "w") as setting:
                setting.write(value)
        except OSError:
            pass  # only root may, even in its own namespace


def confine_worker(
    parent: int, *, needs: Mapping[str, int], rules: int | None, abi: int, offline: bool
) -> dict[str, Any]:
    """Confine this worker process permanently; the report has the fields of limits.Confinement."""
    missing: list[str] = []
    prefer_oom_kill()
    memory = measure_address_space() + needs["memory"]
    os.setsid()
    rlimits: dict[str, int | tuple[int, int]] = {
        "AS": (memory, memory + _WRITE_FACTOR * needs["output"] + _WRITE_SLACK_BYTES),
        "CPU": needs["cpu_budget"],  # seconds for the worker's whole life; a timer in worker.py limits one call
        "FSIZE": 0,
        "NPROC": 0,
        "NOFILE": _WORKER_OPEN_FILES,
    }
    filter_options = {"sockets": seccomp.NO_SOCKETS, "shares_ipc": True, "is_worker": True}
    return _confine(
        parent, rlimits, filter_options, rules=rules, abi=abi, offline=offline, own_root=False, missing=missing
    )


def confine_program(
    parent: int,
    *,
    needs: Mapping[str, int],
    rules: int | None,
    abi: int,
    offline: bool,
    own_root: bool,
    has_ports: bool,
    needs_unix_sockets: bool,
    shares_ipc: bool,
    users: int | None,
    missing: list[str],
) -> dict[str, Any]:
    """Confine a process that is about to execute a program; it may start others, and write to its scratch folder.

    `users` is from `rootfs.create_user_namespace`, if the program joins a user namespace now. `has_ports`: it may
    connect to ports of the host network. `shares_ipc`: it has no IPC namespace of its own. `own_root`: it has its own
    root folder. `needs_unix_sockets`: it may use Unix sockets even if it can reach those of other processes.
    """
    rlimits: dict[str, int | tuple[int, int]] = {
        # Go programs reserve far more addresses than they use; memory that they write to counts as DATA.
        "AS": 4 * needs["memory"] + _ADDRESS_SPACE_SLACK_BYTES,
        "DATA": needs["memory"],
        "CPU": (needs["cpu"], needs["cpu"] + 1),  # the hard limit is for programs that ignore SIGXCPU
        "FSIZE": needs["scratch"],
        "NPROC": needs["processes"] + needs["tasks"],
        "NOFILE": _PROGRAM_OPEN_FILES,
    }
    os.setpgid(0, 0)  # stay in the launcher's session, so that its priority applies to the whole program
    sockets = seccomp.INTERNET_SOCKETS if offline or has_ports else seccomp.NO_SOCKETS
    if needs_unix_sockets:
        sockets |= seccomp.UNIX_SOCKETS
    filter_options = {"sockets": sockets, "shares_ipc": shares_ipc}
    return _confine(
        parent, rlimits, filter_options, rules=rules, abi=abi, offline=offline, own_root=own_root, users=users,
        missing=missing,
    )  # fmt: skip


def _confine(
    parent: int,
    requested_rlimits: Mapping[str, int | tuple[int, int]],
    filter_options: Mapping[str, Any],
    *,
    rules: int | None,
    abi: int,
    offline: bool,
    own_root: bool,
    missing: list[str],
    users: int | None = None,
) -> dict[str, Any]:
    os.umask(0o077)
    # Before the user changes (no_new_privs) and before Landlock (reads /proc).
    _prctl(_SET_NO_NEW_PRIVS, 1)
    rlimits = _set_rlimits({**requested_rlimits, "CORE": 0, "MEMLOCK": 0}, missing)
    has_own_keyring = join_empty_keyring()  # while root, whose key quota is not shared with confined users
    if users is not None:
        rootfs.join_user_namespace(users)  # after the limits, which only the host's root may raise
    _become_nobody(missing)
    # After the user changed: the kernel resets both settings then.
    _prctl(_SET_DUMPABLE, 0)
    exit_with_parent(parent)
    version = _enter_landlock(rules, abi, missing)
    sees_own_unix_sockets = sees_only_own_unix_sockets(own_root, offline, version)
    sockets = filter_options["sockets"] | (seccomp.UNIX_SOCKETS if sees_own_unix_sockets else seccomp.NO_SOCKETS)
    # Last: the filter refuses the calls above.
    is_filtered = _enter_seccomp({**filter_options, "sockets": sockets}, missing)
    network = _classify_network(offline, version, is_filtered and seccomp.INTERNET not in sockets)
    unix_sockets = "own" if sees_own_unix_sockets else "open"
    if is_filtered and seccomp.UNIX not in sockets:
        unix_sockets = "refused"
    if not offline:
        refused = {"no-sockets": "every socket", "no-tcp": "only TCP", "open": "nothing"}[network]
        missing.append(f"network: no empty network namespace; {refused} is refused")
    if unix_sockets == "open":
        missing.append("Unix sockets: sockets of other processes can be reached")
    return {
        "started": True,
        "uid": os.getuid(),
        "gid": os.getgid(),
        "landlock": version,
        "network": network,
        "unix_sockets": unix_sockets,
        "seccomp": is_filtered,
        "session_keyring": has_own_keyring,
        "own_root": False,  # set by the launcher
        "no_new_privs": _prctl(_GET_NO_NEW_PRIVS) == 1,
        "rlimits": rlimits,
        "missing": missing,
    }


def sees_only_own_unix_sockets(own_root: bool, offline: bool, landlock_version: int) -> bool:
    """True if no Unix socket of another process can be reached, by path or by an abstract name.

    Landlock does not restrict socket paths, so this needs an own root folder. Abstract names belong to the network.
    """
    return own_root and (offline or landlock_version >= _SCOPED_ABI)


def _classify_network(offline: bool, landlock_version: int, has_no_sockets: bool) -> str:
    if offline:
        return "none"
    return "no-sockets" if has_no_sockets else "no-tcp" if landlock_version >= 4 else "open"


def join_empty_keyring() -> bool:
    """Join an empty session keyring, so that keys of the parent and of other runs are not accessible."""
    if not seccomp.is_supported():
        return False
    number = syscall_tables.NUMBERS["keyctl"][syscall_tables.MACHINES[os.uname().machine][0]]
    return int(ctypes.CDLL(None).syscall(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), None)) >= 0


def _enter_seccomp(filter_options: Mapping[str, Any], missing: list[str]) -> bool:
    if not seccomp.is_supported():
        missing.append(f"seccomp: no filter for {sys.platform} on {os.uname().machine}, {_BITS} bits")
        return False
    try:
        seccomp.install(seccomp.build_filter(**filter_options))
    except OSError as problem:
        missing.append(f"seccomp: {problem}")
        return False
    return True


def _prctl(option: int, value: int = 0) -> int:
    if sys.platform != "linux":
        return -1
    arguments = [ctypes.c_ulong(number) for number in (value, 0, 0, 0)]
    return int(ctypes.CDLL(None).prctl(option, *arguments))


def prefer_oom_kill() -> None:
    """Make the kernel kill this process, and not its parent, when the machine runs out of memory."""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("1000")
    except OSError:
        pass


def _set_rlimits(requested: Mapping[str, int | tuple[int, int]], missing: list[str]) -> dict[str, int]:
    in_force: dict[str, int] = {}
    for name, value in requested.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        soft, hard = value if isinstance(value, tuple) else (value, value)
        try:
            if number is None:
                raise OSError("not available on this system")
            resource.setrlimit(number, (soft, hard))
            in_force[name.lower()] = soft
        except (OSError, ValueError) as problem:
            missing.append(f"rlimit {name.lower()}: {problem}")
    return in_force


def count_user_tasks() -> int:
    """Count the processes and threads of the user that a program will run as.

    If rlimit nproc counts all of them, it must be above this number, and is only exact while the number is stable.
    """
    user, count = NOBODY_ID if os.geteuid() == 0 else os.getuid(), 0
    for name in filter(str.isdigit, os.listdir("/proc") if sys.platform == "linux" else ()):
        try:
            if os.stat(f"/proc/{name}").st_uid == user:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue  # it has ended
    return count


def measure_address_space() -> int:
    """Return the bytes that this process has already mapped: libraries and allocator pools, not charged to a call."""
    try:
        with open("/proc/self/statm", "rb") as sizes:
            return int(sizes.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 512 << 20


def _become_nobody(missing: list[str]) -> None:
    if os.geteuid() != 0:
        return
    try:
        os.setgroups([])
        os.setgid(NOBODY_ID)
        os.setuid(NOBODY_ID)
    except OSError as problem:
        missing.append(f"user: still root ({problem}), so rlimit nproc does not bind")
        _drop_capabilities()


def _drop_capabilities() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).capset(struct.pack("=Ii", _CAPABILITIES_V3, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0))


def _enter_landlock(rules: int | None, abi: int, missing: list[str]) -> int:
    if rules is None:
        missing.append("landlock: not available in this kernel")
        return 0
    try:
        landlock.restrict_process(rules)
    except OSError as problem:
        missing.append(f"landlock: {problem}")
        return 0
    if abi < 4:
        missing.append(f"landlock: ABI {abi} cannot refuse TCP")
    if abi < _SCOPED_ABI:
        missing.append(f"landlock: ABI {abi} cannot refuse signals to processes of the same user")
    return abi
