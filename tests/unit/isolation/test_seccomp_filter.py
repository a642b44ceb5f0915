"""Verdicts of the seccomp filter on both architectures: its BPF instructions are run as by the kernel."""

from __future__ import annotations

import errno
import struct

import pytest

from argosy.isolation import process_confinement, seccomp, syscall_tables

ALLOW, ERRNO = 0x7FFF0000, 0x00050000
LOAD, AND, EQUAL, ABOVE, RETURN = 0x20, 0x54, 0x15, 0x25, 0x06
MACHINES = list(syscall_tables.MACHINES)
BOTH = seccomp.UNIX_SOCKETS | seccomp.INTERNET_SOCKETS
SOCKETS = (seccomp.NO_SOCKETS, seccomp.UNIX_SOCKETS, seccomp.INTERNET_SOCKETS, BOTH)
EPERM, ENOSYS = ERRNO | errno.EPERM, ERRNO | errno.ENOSYS


def verdict(instructions: bytes, number: int, architecture: int, arguments: tuple[int, ...] = ()) -> int:
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    code = [struct.unpack_from("=HBBI", instructions, at) for at in range(0, len(instructions), 8)]
    at = loaded = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == RETURN:
            return value
        if operation == LOAD:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif operation == AND:
            loaded &= value
        else:
            assert operation in (EQUAL, ABOVE)
            holds = loaded == value if operation == EQUAL else loaded > value
            at += if_true if holds else if_false


def judge(
    machine: str, name: str, *arguments: int, sockets: frozenset[str] = seccomp.UNIX_SOCKETS, **options: bool
) -> int:
    column, architecture = syscall_tables.MACHINES[machine]
    instructions = seccomp.build_filter(machine=machine, sockets=sockets, **{"shares_ipc": False, **options})
    return verdict(instructions, syscall_tables.NUMBERS[name][column], architecture, arguments)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", syscall_tables.REFUSED_CALLS)
def test_every_call_of_the_refused_table_gets_eperm(machine, name):
    if syscall_tables.NUMBERS[name][MACHINES.index(machine)] != -1:
        assert judge(machine, name) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("is_worker", [False, True])
def test_calls_of_another_architecture_are_refused(machine, is_worker):
    instructions = seccomp.build_filter(
        machine=machine, sockets=seccomp.UNIX_SOCKETS, shares_ipc=False, is_worker=is_worker
    )
    own_architecture = syscall_tables.MACHINES[machine][1]
    for architecture in (0x40000003, 0x40000028, 0xC000003E, 0xC00000B7, 0):
        if architecture != own_architecture:
            assert {verdict(instructions, number, architecture) for number in range(500)} == {EPERM}


@pytest.mark.parametrize("machine", MACHINES)
def test_unknown_call_numbers_get_enosys(machine):
    instructions = seccomp.build_filter(machine=machine, sockets=seccomp.UNIX_SOCKETS, shares_ipc=False)
    architecture = syscall_tables.MACHINES[machine][1]
    for number in (syscall_tables.HIGHEST_KNOWN_NUMBER + 1, 1000, 0x40000000 | 39, 0xFFFFFFFF):  # third: x32
        assert verdict(instructions, number, architecture) == ENOSYS
    assert verdict(instructions, syscall_tables.HIGHEST_KNOWN_NUMBER, architecture) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_new_namespaces_are_refused_and_threads_are_allowed(machine):
    assert judge(machine, "clone3") == ENOSYS
    assert judge(machine, "clone", 0x3D0F00) == ALLOW  # flags with which a C library starts a thread
    assert judge(machine, "clone", 17) == ALLOW  # flags of a fork
    for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert judge(machine, "clone", flag | 17) == EPERM
        assert judge(machine, "unshare", flag) == EPERM
    assert judge(machine, "unshare", 0x400) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("family", range(46))
def test_only_allowed_address_families_can_create_sockets(machine, family):
    unix, internet = family == 1, family in (2, 10, 16)
    assert (judge(machine, "socket", family, 1, 0) == ALLOW) is unix
    assert (judge(machine, "socket", family, 1, 0, sockets=seccomp.INTERNET_SOCKETS) == ALLOW) is internet
    assert (judge(machine, "socket", family, 1, 0, sockets=BOTH) == ALLOW) is (unix or internet)
    assert judge(machine, "socket", family, 1, 0, sockets=seccomp.NO_SOCKETS) == EPERM
    assert judge(machine, "socket", family, 1, 0, sockets=seccomp.NO_SOCKETS, is_worker=True) == EPERM
    assert (judge(machine, "socketpair", family, 1, 0) == ALLOW) is unix


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("sockets", [seccomp.NO_SOCKETS, seccomp.INTERNET_SOCKETS])
def test_without_unix_sockets_only_connected_socketpairs_are_allowed(machine, sockets):
    close_on_exec = 0x80000
    for kind, verdict_of_pair in ((1, ALLOW), (5, ALLOW), (2, EPERM), (3, EPERM)):  # stream, packets, datagram, raw
        assert judge(machine, "socketpair", 1, kind | close_on_exec, 0, sockets=sockets) == verdict_of_pair
        assert judge(machine, "socketpair", 1, kind, 0, sockets=seccomp.UNIX_SOCKETS) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_internet_sockets_allow_only_tcp_and_udp(machine):
    def ask(*arguments: int) -> int:
        return judge(machine, "socket", *arguments, sockets=seccomp.INTERNET_SOCKETS)

    close_on_exec = 0x80000
    for family in (2, 10):
        assert ask(family, 1 | close_on_exec, 6) == ask(family, 2, 17) == ALLOW
        for kind, protocol in ((1, 262), (1, 132), (2, 136), (3, 1), (3, 255), (5, 0)):
            assert ask(family, kind, protocol) == EPERM
    assert ask(16, 3, 12) == EPERM  # netfilter


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("name", "place"), [("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)])
def test_send_calls_with_fast_open_are_refused(machine, name, place):
    assert judge(machine, name, *(0,) * place, 0x4000) == ALLOW
    assert judge(machine, name, *(0,) * place, 0x20000000 | 0x4000) == EPERM


@pytest.mark.parametrize("machine", MACHINES)
def test_shared_memory_calls_are_refused_if_ipc_is_shared(machine):
    for name in syscall_tables.REFUSED_WITH_SHARED_IPC:
        assert judge(machine, name, shares_ipc=True) == EPERM
        assert judge(machine, name, shares_ipc=False) == ALLOW


def test_architecture_without_a_table_has_no_filter():
    assert not seccomp.is_supported("riscv64")
    with pytest.raises(KeyError):
        seccomp.build_filter(machine="riscv64", sockets=seccomp.UNIX_SOCKETS, shares_ipc=False)


@pytest.mark.parametrize("machine", MACHINES)
def test_32_bit_python_on_a_64_bit_kernel_has_no_filter(machine, monkeypatch):
    monkeypatch.setattr(seccomp.sys, "platform", "linux")
    assert seccomp.is_supported(machine)
    monkeypatch.setattr(struct, "calcsize", lambda form: {"P": 4}[form])
    assert not seccomp.is_supported(machine)


def test_32_bit_python_makes_no_raw_system_call(monkeypatch):
    monkeypatch.setattr(struct, "calcsize", lambda form: {"P": 4}[form])
    monkeypatch.setattr(process_confinement.ctypes, "CDLL", lambda *names: pytest.fail("a system call was made"))
    assert not process_confinement.join_empty_keyring()


# Literal numbers from the kernel's asm/unistd_64.h and asm-generic/unistd.h, as an independent check of the table.
@pytest.mark.parametrize(
    ("machine", "architecture", "numbers"),
    [
        ("x86_64", 0xC000003E, {"ptrace": 101, "mount": 165, "keyctl": 250, "bpf": 321, "setns": 308, "add_key": 248,
                                "process_vm_readv": 310, "userfaultfd": 323, "init_module": 175, "chroot": 161,
                                "perf_event_open": 298, "io_uring_setup": 425, "socket of vsock": 41}),
        ("aarch64", 0xC00000B7, {"ptrace": 117, "mount": 40, "keyctl": 219, "bpf": 280, "setns": 268, "add_key": 217,
                                 "process_vm_readv": 270, "userfaultfd": 282, "init_module": 105, "chroot": 51,
                                 "perf_event_open": 241, "io_uring_setup": 425, "socket of vsock": 198}),
    ],
)  # fmt: skip
def test_dangerous_calls_are_refused_by_their_kernel_numbers(machine, architecture, numbers):
    instructions = seccomp.build_filter(machine=machine, sockets=BOTH, shares_ipc=False)
    assert {name: verdict(instructions, number, architecture, (40, 1)) for name, number in numbers.items()} == (
        dict.fromkeys(numbers, EPERM)
    )


@pytest.mark.parametrize(
    ("machine", "architecture", "numbers"),
    [
        ("x86_64", 0xC000003E, {"read": 0, "write": 1, "mmap": 9, "exit_group": 231, "openat": 257, "execve": 59}),
        ("aarch64", 0xC00000B7, {"read": 63, "write": 64, "mmap": 222, "exit_group": 94, "openat": 56, "execve": 221}),
    ],
)
def test_everyday_calls_are_allowed_by_their_kernel_numbers(machine, architecture, numbers):
    instructions = seccomp.build_filter(machine=machine, sockets=seccomp.NO_SOCKETS, shares_ipc=True)
    assert {name: verdict(instructions, number, architecture) for name, number in numbers.items()} == (
        dict.fromkeys(numbers, ALLOW)
    )


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("sockets", SOCKETS)
def test_calls_outside_of_the_table_are_allowed(machine, sockets):
    known_numbers = {numbers[MACHINES.index(machine)] for numbers in syscall_tables.NUMBERS.values()}
    instructions = seccomp.build_filter(machine=machine, sockets=sockets, shares_ipc=False)
    architecture = syscall_tables.MACHINES[machine][1]
    others = set(range(syscall_tables.HIGHEST_KNOWN_NUMBER + 1)) - known_numbers
    assert {verdict(instructions, number, architecture) for number in others} == {ALLOW}
