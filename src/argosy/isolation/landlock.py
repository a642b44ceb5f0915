"""Landlock by system call: restricts a process to a few files, and refuses TCP and signals to other processes.

In: paths that may be read, executed or written. Out: a ruleset that restricts the process that enters it.
Never: fails if the kernel has no Landlock.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every Linux architecture we run on
_ASK_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14  # the kernel refuses a rule for a file with other rights
_DEVICES = 1 << 6 | 1 << 11 | 1 << 15  # make character and block devices, ioctl on them
_TCP, _CONNECT = 0b11, 0b10  # bind and connect; connect alone
_SCOPED = 0b11  # abstract unix sockets, signals


def find_abi_version() -> int:
    """Return the kernel's Landlock ABI version; 0 if it has no Landlock."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


def build_ruleset(
    readable: Iterable[str],
    version: int,
    *,
    runnable: Iterable[str] = (),
    writable: Iterable[str] = (),
    ports: Iterable[int] = (),
) -> int:
    """Build a ruleset and return its descriptor: read below `readable`, also execute below `runnable`, all file
    operations below `writable`, and connect to these TCP `ports` of any host. Raises OSError."""
    reading = _READ_FILE | _READ_DIR
    attributes = struct.pack("<QQQ", _file_rights(version), _TCP if version >= 4 else 0, _SCOPED if version >= 6 else 0)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = _check_result(_syscall(_CREATE_RULESET, attributes, size, 0))
    try:
        for paths, rights in (
            (readable, reading),
            (runnable, reading | _EXECUTE),
            (writable, _file_rights(version) & ~_DEVICES),
        ):
            for path in paths:
                _add_path_rule(rules, path, rights)
        for port in ports if version >= 4 else ():
            _check_result(_syscall(_ADD_RULE, rules, _NET_PORT, struct.pack("=QQ", _CONNECT, port), 0))
    except OSError:
        os.close(rules)
        raise
    os.set_inheritable(rules, False)
    return rules


def restrict_process(rules: int) -> None:
    """Restrict this process; requires no_new_privs. Raises OSError."""
    _check_result(_syscall(_RESTRICT_SELF, rules, 0))


def _file_rights(version: int) -> int:
    """Return all file rights of this ABI version: 13 rights, then REFER (2), TRUNCATE (3) and IOCTL_DEV (5)."""
    return (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1


def _add_path_rule(rules: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no rule
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        _check_result(_syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0))
    finally:
        os.close(descriptor)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(libc.syscall(ctypes.c_long(number), *values))


def _check_result(value: int) -> int:
    if value < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return value
