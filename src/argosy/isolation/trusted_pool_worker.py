"""A worker of the process pool: reads a call, runs it and writes the answer, until its parent closes the socket.

In: pickled calls on a socket. Out: pickled answers. Never: outlives its parent; uses more memory than its limit.
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
from argosy.isolation.process_confinement import exit_with_parent, measure_address_space
from argosy.isolation.scratch_folders import sweep_scratch_folders

LENGTH = struct.Struct("<Q")
# The length of the body, the kind of answer, whether the worker has grown too much, and its CPU seconds.
ANSWER_HEADER = struct.Struct("<Qc?d")
GC_THRESHOLDS = (10_000, 20, 20)  # the default thresholds would run many useless collections during imports
READY, DONE, RAISED, NO_MEMORY = b"r", b"+", b"-", b"m"


def main(arguments: Sequence[str]) -> None:
    descriptor, parent, memory = map(int, arguments)
    exit_with_parent(parent)
    gc.set_threshold(*GC_THRESHOLDS)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as channel:
        calls = channel.makefile("rb")
        channel.set_inheritable(False)
        sys.path[:], modules = pickle.loads(_read_frame(calls))  # noqa: S301  from our parent
        for name in modules:
            import_module(name)
        sweep_scratch_folders()  # of killed processes; here, because the parent must not wait for a disk
        start = measure_address_space()
        _set_soft_limits(start + memory)
        channel.sendall(ANSWER_HEADER.pack(0, READY, False, 0.0))
        while call := _read_frame(calls):
            before = _cpu_seconds()
            kind, body = _run_call(call)
            cpu = _cpu_seconds() - before
            call = b""
            try:
                channel.sendall(ANSWER_HEADER.pack(len(body), kind, measure_address_space() - start > memory // 2, cpu))
                channel.sendall(body)
            except OSError:
                return  # the parent has closed the socket
            body = b""


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished child programs."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _set_soft_limits(max_bytes: int) -> None:
    """Set soft limits only: a program that the worker starts may raise them."""
    for number, value in ((resource.RLIMIT_AS, max_bytes), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(number)[1]
        with suppress(OSError, ValueError):  # not every system has this limit; the deadline always applies
            resource.setrlimit(number, (value if hard == resource.RLIM_INFINITY else min(value, hard), hard))


def _read_frame(calls: BufferedReader) -> bytes:
    head = calls.read(LENGTH.size)
    return calls.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""


def _run_call(call: bytes) -> tuple[bytes, bytes]:
    try:
        function, args = pickle.loads(call)  # noqa: S301  from our parent
        return DONE, pickle.dumps(function(*args), protocol=pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return NO_MEMORY, b""
    except BaseException as problem:
        return RAISED, _pickle_error(problem)


def _pickle_error(problem: BaseException) -> bytes:
    """Pickle an exception: ArgosyErrors unchanged, others (bugs) with their traceback as a note."""
    if not isinstance(problem, ArgosyError):
        problem.add_note("in a worker process:\n" + "".join(traceback.format_tb(problem.__traceback__)))
    try:
        pickled = pickle.dumps(problem, protocol=pickle.HIGHEST_PROTOCOL)
        if isinstance(pickle.loads(pickled), Exception):  # noqa: S301  a SystemExit must not end the parent
            return pickled
    except Exception:
        pickled = b""
    replacement = RuntimeError(f"{type(problem).__name__}: {problem}")
    replacement.__notes__ = list(getattr(problem, "__notes__", ()))
    return pickle.dumps(replacement)
