"""Builds and installs a seccomp filter that refuses system calls of confined code.

In: which sockets are allowed, and whether System V IPC is shared with others. Out: a permanent filter for this process
and its children. Never: fails if the kernel or architecture does not support it; needs privileges or a library.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

from argosy.isolation import syscall_tables

TYPE_CHECKING = False  # as in __init__
if TYPE_CHECKING:
    from collections.abc import Iterable

UNIX, INTERNET = "unix", "internet"
NO_SOCKETS, UNIX_SOCKETS, INTERNET_SOCKETS = frozenset[str](), frozenset({UNIX}), frozenset({INTERNET})

_LOAD, _AND, _EQUAL, _ABOVE, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x06  # classic BPF
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in the kernel's seccomp_data
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_SET_SECCOMP, _MODE_FILTER = 22, 2
_NEW_NAMESPACES = 0x7E020080  # every CLONE_NEW* flag: time, mount, cgroup, UTS, IPC, user, PID and network
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: type into a terminal
_FAST_OPEN = 0x20000000  # MSG_FASTOPEN connects without the call that Landlock checks
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _PACKETS, _TYPE_MASK = 1, 2, 5, 0xF
_PROTOCOLS = (0, 6, 17)  # default, TCP, UDP: Landlock does not check others, such as MPTCP


def is_supported(machine: str = "") -> bool:
    """True if a filter can be built for this architecture and a 64-bit process.

    `uname -m` is the kernel's architecture; a 32-bit process on it uses the calls of another architecture.
    """
    is_linux = sys.platform == "linux" and struct.calcsize("P") == 8
    return is_linux and (machine or os.uname().machine) in syscall_tables.MACHINES


def build_filter(*, sockets: frozenset[str], shares_ipc: bool, is_worker: bool = False, machine: str = "") -> bytes:
    """Build the instructions of the filter; `machine` is that of `uname -m`. KeyError if it is not supported.

    `sockets` is a union of UNIX_SOCKETS and INTERNET_SOCKETS, or NO_SOCKETS.
    """
    column, architecture = syscall_tables.MACHINES[machine or os.uname().machine]

    def number(name: str) -> int:
        return syscall_tables.NUMBERS[name][column]

    refused = [*syscall_tables.REFUSED_CALLS, *(syscall_tables.REFUSED_WITH_SHARED_IPC if shares_ipc else ())]
    if is_worker:
        refused += syscall_tables.REFUSED_IN_WORKERS
    program = [_load(_ARCHITECTURE), *_unless_equal(architecture, [_refuse()])]
    program += [_load(_NUMBER), *_if_above(syscall_tables.HIGHEST_KNOWN_NUMBER, [_refuse(errno.ENOSYS)])]
    # clone3 passes its flags in memory, which a filter cannot read; C libraries fall back to clone.
    program += _if_equal([number("clone3")], [_refuse(errno.ENOSYS)])
    for refused_number in sorted({number(name) for name in refused} - {-1}):
        program += _if_equal([refused_number], [_refuse()])
    for name in ("clone", "unshare"):
        program += _if_equal([number(name)], _build_bits_check(0, _NEW_NAMESPACES))
    program += _if_equal([number("ioctl")], [_load_argument(1), *_if_equal(_TERMINAL_INPUT, [_refuse()]), _allow()])
    program += _if_equal([number("socketpair")], _build_socketpair_check(sockets))
    program += _if_equal([number("socket")], _build_socket_check(sockets))
    for name, argument in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        program += _if_equal([number(name)], _build_bits_check(argument, _FAST_OPEN))
    return b"".join([*program, _allow()])


def install(instructions: bytes) -> None:
    """Install the filter in this process; requires no_new_privs. Raises OSError."""
    code = ctypes.create_string_buffer(instructions, len(instructions))
    header = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_MODE_FILTER), header, ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _build_socketpair_check(sockets: frozenset[str]) -> list[bytes]:
    """Check a socketpair call. A datagram socket of a pair could still send to any path, so it is refused."""
    by_type = [
        _load_argument(1),
        _instruction(_AND, _TYPE_MASK),
        *_if_equal((_STREAM, _PACKETS), [_allow()]),
        _refuse(),
    ]
    return [_load_argument(0), *_if_equal([_UNIX], [_allow()] if UNIX in sockets else by_type), _refuse()]


def _build_socket_check(sockets: frozenset[str]) -> list[bytes]:
    program = [_load_argument(0), *(_if_equal([_UNIX], [_allow()]) if UNIX in sockets else ())]
    if INTERNET not in sockets:
        return [*program, _refuse()]
    # Route queries are allowed: C libraries use them to sort addresses.
    program += _if_equal([_NETLINK], [_load_argument(2), *_if_equal([0], [_allow()]), _refuse()])
    by_protocol = [_load_argument(2), *_if_equal(_PROTOCOLS, [_allow()]), _refuse()]
    by_type = [
        _load_argument(1),
        _instruction(_AND, _TYPE_MASK),
        *_if_equal((_STREAM, _DATAGRAM), by_protocol),
        _refuse(),
    ]
    return [*program, *_if_equal((_INET, _INET6), by_type), _refuse()]


def _build_bits_check(argument: int, bits: int) -> list[bytes]:
    return [_load_argument(argument), _instruction(_AND, bits), *_if_equal([0], [_allow()]), _refuse()]


def _if_equal(values: Iterable[int], then: list[bytes]) -> list[bytes]:
    """Run `then`, which ends in a return, if the loaded value is one of these; else continue after it."""
    numbers = list(values)
    tests = [
        _instruction(_EQUAL, value, len(numbers) - 1 - index, 0 if index < len(numbers) - 1 else len(then))
        for index, value in enumerate(numbers)
    ]
    return [*tests, *then]


def _unless_equal(value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(_EQUAL, value, len(then), 0), *then]


def _if_above(value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(_ABOVE, value, 0, len(then)), *then]


def _load_argument(index: int) -> bytes:
    """Load the lower half of an argument: only 32-bit numbers are checked here."""
    return _load(_ARGUMENTS + 8 * index)


def _load(offset: int) -> bytes:
    return _instruction(_LOAD, offset)


def _allow() -> bytes:
    return _instruction(_RETURN, _ALLOW)


def _refuse(number: int = errno.EPERM) -> bytes:
    return _instruction(_RETURN, _ERRNO | number)


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
