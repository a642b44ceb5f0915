"""Runs a program as if the kernel lacked isolation features: Landlock, seccomp, namespaces, keyrings.

In: argv: the missing features, separated by commas; then the program and its arguments. Out: that program, in place of
this one. Never: returns; needs root or another kernel: a seccomp filter returns the errors of such a kernel.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from pathlib import Path

LOAD, EQUAL, RETURN, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine, -1)
LACKING = {
    "landlock": [((444, 444), errno.ENOSYS), ((445, 445), errno.ENOSYS), ((446, 446), errno.ENOSYS)],
    "namespaces": [((272, 97), errno.EPERM), ((165, 40), errno.EPERM), ((308, 268), errno.EPERM)],
    "keyrings": [((250, 219), errno.EPERM), ((248, 217), errno.EPERM)],
}
PRCTL = (157, 167)


def command(*lacking: str) -> list[str]:
    """The command prefix."""
    return [sys.executable, str(Path(__file__)), ",".join(lacking)]


def instructions(lacking: list[str]) -> bytes:
    code = [struct.pack("=HBBI", LOAD, 0, 0, 0)]
    for part in lacking:
        for numbers, answer in LACKING.get(part, ()):
            code.append(struct.pack("=HBBI", EQUAL, 0, 1, numbers[COLUMN]))
            code.append(struct.pack("=HBBI", RETURN, 0, 0, ERRNO | answer))
    if "seccomp" in lacking:
        code.append(struct.pack("=HBBI", EQUAL, 0, 3, PRCTL[COLUMN]))
        code.append(struct.pack("=HBBI", LOAD, 0, 0, 16))
        code.append(struct.pack("=HBBI", EQUAL, 0, 1, SET_SECCOMP))
        code.append(struct.pack("=HBBI", RETURN, 0, 0, ERRNO | errno.EINVAL))
    return b"".join([*code, struct.pack("=HBBI", RETURN, 0, 0, ALLOW)])


def main() -> None:
    lacking, program = sys.argv[1].split(","), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    code = instructions(lacking)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    zero = ctypes.c_ulong(0)
    assert libc.prctl(NO_NEW_PRIVS, ctypes.c_ulong(1), zero, zero, zero) == 0
    assert libc.prctl(SET_SECCOMP, ctypes.c_ulong(FILTER), header, zero, zero) == 0
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
