"""System calls that isolated code must not be able to make; as a script, makes them and prints the results.

In: nothing. Out: JSON of names and error numbers (0: the call succeeded). Never: a call that would harm the machine if
it were allowed: the kernel rejects the arguments, or they affect only this process.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import struct

X86_64, AARCH64 = 0, 1
COLUMN = {"x86_64": X86_64, "aarch64": AARCH64}.get(platform.machine(), -1)
NEW_USER, NEW_NET, NEW_UTS = 0x10000000, 0x40000000, 0x04000000
SESSION_KEYRING, GET_KEYRING_ID = -3, 0
NOTHING = (0, 0, 0, 0, 0)

# Name: system call number on x86_64, number on aarch64, arguments.
CALLS = {
    "keyctl": (250, 219, (GET_KEYRING_ID, SESSION_KEYRING, 1)),
    "add_key": (248, 217, NOTHING),
    "request_key": (249, 218, NOTHING),
    "io_uring_setup": (425, 425, (1, 0)),
    "io_uring_enter": (426, 426, (-1, 0, 0, 0, 0, 0)),
    "io_uring_register": (427, 427, (-1, 0, 0, 0)),
    "bpf": (321, 280, (-1, 0, 0)),
    "userfaultfd": (323, 282, (0x7FFF,)),
    "ptrace": (101, 117, (16, 0, 0, 0)),
    "process_vm_readv": (310, 270, (0x7FFFFFF0, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (0x7FFFFFF0, 0, 0, 0, 0, 0)),
    "pidfd_getfd": (438, 438, (-1, 0, 0)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "kexec_load": (246, 104, (0, 17, 0, 0xFFFF)),
    "init_module": (175, 105, (0, 0, 0)),
    "finit_module": (313, 273, (-1, 0, 0)),
    "mount": (165, 40, NOTHING),
    "umount2": (166, 39, (0, 0)),
    "open_tree": (428, 428, (-1, 0, 0)),
    "move_mount": (429, 429, NOTHING),
    "fsopen": (430, 430, (0, 0)),
    "mount_setattr": (442, 442, (-1, 0, 0, 0, 0)),
    "setns": (308, 268, (-1, 0)),
    "unshare of users": (272, 97, (NEW_USER,)),
    "unshare of the network": (272, 97, (NEW_USER | NEW_NET,)),
    "clone3": (435, 435, (0, 0)),
    "chroot": (161, 51, (0,)),
    "open_by_handle_at": (304, 265, (-1, 0, 0)),
    "memfd_secret": (447, 447, (0x7FFF,)),
    "swapon": (167, 224, (0, 0)),
    "a call newer than the filter": (466 + 40, 466 + 40, ()),
    "socket of vsock": (41, 198, (40, 1, 0)),
    "socket of packets": (41, 198, (17, 3, 0)),
    "socket of kernel cryptography": (41, 198, (38, 5, 0)),
    "socket of netfilter": (41, 198, (16, 3, 12)),
    "socket of keys": (41, 198, (15, 3, 2)),
    "socket of Bluetooth": (41, 198, (31, 3, 1)),
    "socket of raw IP": (41, 198, (2, 3, 1)),
    "socket of multipath TCP": (41, 198, (2, 1, 262)),
    "ioctl that types into a terminal": (16, 29, (0, 0x5412, 0)),
}
# Blocked unless the program has its own root folder.
UNIX_SOCKET = {"socket of Unix": (41, 198, (1, 1, 0))}
# Never blocked, because ordinary programs need them.
ALLOWED = {
    "getpid": (39, 172, ()),
    "sched_yield": (24, 124, ()),
    "unshare of open files": (272, 97, (0x400,)),
}
IN_SUBPROCESS = ("clone into new users", "call of another architecture")


def make_call(name: str) -> int:
    """Return the error number of the call; 0 if it succeeds."""
    *numbers, arguments = {**CALLS, **ALLOWED, **UNIX_SOCKET}[name]
    return call(numbers[COLUMN], *arguments)


def call(number: int, *arguments: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno() if result < 0 else 0


def clone_into_new_users() -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    words = map(ctypes.c_long, (NEW_USER | signal.SIGCHLD, *NOTHING[:4]))
    result = libc.syscall(ctypes.c_long((56, 220)[COLUMN]), *words)
    if result == 0:
        os._exit(0)
    return ctypes.get_errno() if result < 0 else 0


def call_of_another_architecture() -> int:
    """Call getpid like a 32-bit program; return ENOSYS if this machine has no 32-bit calls."""
    if COLUMN != X86_64:
        return errno.ENOSYS
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
        address = ctypes.addressof(ctypes.c_char.from_buffer(code))
        result = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
        os._exit(-result if -200 < result < 0 else 0)
    code_of_child = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return errno.ENOSYS if code_of_child < 0 else code_of_child


def in_own_process(name: str) -> int:
    """Make the call in a new process, because the call may change its process."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, struct.pack("i", make_call(name)))
        os._exit(0)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        return int(struct.unpack("i", pipe.read(4))[0])


def main() -> None:
    results = {name: in_own_process(name) for name in (*CALLS, *ALLOWED, *UNIX_SOCKET)}
    results["clone into new users"] = clone_into_new_users()
    results["call of another architecture"] = call_of_another_architecture()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
