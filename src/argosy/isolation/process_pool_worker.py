"""A worker of the crew: reads a call, runs it, writes the answer, until its parent hangs up.

In: pickled calls on a socket. Out: pickled answers. Never: outlives its parent; takes more memory than it was given.
"""

from __future__ import annotations

import gc
import pickle
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from io import BufferedReader

from argosy.errors import ArgosyError
from argosy.isolation.restrictions import address_space, die_with
from argosy.isolation.scratch_folders import sweep_scratch_folders

LENGTH = struct.Struct("<Q")
# The length of what follows, the kind of answer, whether the worker has grown too much, and the CPU seconds it took.
HEAD = struct.Struct("<Qc?d")
COLLECTED = (10_000, 20, 20)  # the usual would look for cycles again and again during imports, and find none
READY, DONE, RAISED, NO_MEMORY = b"r", b"+", b"-", b"m"


def main(arguments: Sequence[str]) -> None:
    descriptor, parent, memory = map(int, arguments)
    die_with(parent)
    gc.set_threshold(*COLLECTED)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as channel:
        calls = channel.makefile("rb")
        channel.set_inheritable(False)
        sys.path[:], modules = pickle.loads(_frame(calls))  # noqa: S301  from our parent
        for name in modules:
            import_module(name)
        sweep_scratch_folders()  # of processes that were killed; here, because a parent must not wait for a disk
        start = address_space()
        _limit(start + memory)
        channel.sendall(HEAD.pack(0, READY, False, 0.0))
        while call := _frame(calls):
            before = _cpu_seconds()
            kind, body = _answer(call)
            cpu = _cpu_seconds() - before
            call = b""
            try:
                channel.sendall(HEAD.pack(len(body), kind, address_space() - start > memory // 2, cpu))
                channel.sendall(body)
            except OSError:
                return  # nobody waits for it any more
            body = b""


def _cpu_seconds() -> float:
    """Of this process, and of programs that it ran to their end."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _limit(most: int) -> None:
    """The soft limits alone: a program that it starts may raise them to what it needs."""
    for number, value in ((resource.RLIMIT_AS, most), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(number)[1]
        with suppress(OSError, ValueError):  # not every system has this limit; the deadline holds everywhere
            resource.setrlimit(number, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _frame(calls: BufferedReader) -> bytes:
    head = calls.read(LENGTH.size)
    return calls.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _answer(call: bytes) -> tuple[bytes, bytes]:
    try:
        function, args = pickle.loads(call)  # noqa: S301  from our parent
        return DONE, pickle.dumps(function(*args), protocol=pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return NO_MEMORY, b""
    except BaseException as problem:
        return RAISED, _packed(problem)


def _packed(problem: BaseException) -> bytes:
    """Our errors as they are; others, which are mistakes of ours, with the place where they happened."""
    if not isinstance(problem, ArgosyError):
        problem.add_note("in a worker process:\n" + "".join(traceback.format_tb(problem.__traceback__)))
    try:
        packed = pickle.dumps(problem, protocol=pickle.HIGHEST_PROTOCOL)
        if isinstance(pickle.loads(packed), Exception):  # noqa: S301  one that asks to end the process is for us alone
            return packed
    except Exception:
        packed = b""
    told = RuntimeError(f"{type(problem).__name__}: {problem}")
    told.__notes__ = list(getattr(problem, "__notes__", ()))
    return pickle.dumps(told)
