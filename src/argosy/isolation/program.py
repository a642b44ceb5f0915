"""Runs an untrusted program confined and with limits, until all of its processes have ended.

In: a command, a folder, readable paths, stdin. Out: its exit code and output, or the exceeded limit.
Never: gives it our environment, files, network or user (as far as the system allows); leaves a process behind.
"""

from __future__ import annotations

import marshal
import os
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

import argosy
from argosy.errors import TransientError
from argosy.isolation.cgroup import find_parent
from argosy.isolation.errors import LimitName, NotConfinedError, RefusedError, program_over
from argosy.isolation.limits import Confinement, ProgramLimits
from argosy.isolation.requirement import is_required
from argosy.isolation.restrictions import NOBODY
from argosy.isolation.scratch_folders import scratch_folder

PATH = "/usr/local/bin:/usr/bin:/bin"
_RUNNABLE = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64",
    "/usr/libexec", "/usr/local/bin", "/usr/local/lib",
)  # fmt: skip
_READABLE = (
    "/usr/share", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
    "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
_WRITABLE = ("/dev/null",)
_BOOT = "import sys; sys.path.append(sys.argv[2]); from argosy.isolation.launcher import main; main(int(sys.argv[1]))"
_MODULE = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), None, '__main__', True)"
)
_HOME = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
_CHUNK = 1 << 16
_KEPT_STDERR = 64 << 10
_PATIENCE = 10.0  # seconds for the launcher to kill all processes
_NO_SPACE = b"No space left on device"
_OUT_OF_MEMORY = (b"runtime: out of memory", b"runtime: cannot allocate memory", b"\nMemoryError", b"std::bad_alloc")


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of a program that ended by itself. A negative code is a signal; only the end of stderr is kept."""

    code: int
    stdout: bytes
    stderr: bytes
    confinement: Confinement = field(default_factory=Confinement)


def run(
    argv: Sequence[str],
    *,
    folder: Path,
    readable: Sequence[Path] = (),
    scratch: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    disposable: Sequence[Path] = (),
    limits: ProgramLimits = ProgramLimits(),  # noqa: B008
) -> Finished:
    """Run a program in `folder`. It may read `folder`, `readable`, and the system's programs and libraries.

    It may write only to `scratch`, which is also its HOME. The launcher removes `disposable` folders if this process
    is killed meanwhile. Raises LimitExceeded; RefusedError if it cannot be started; NotConfinedError if confinement is
    required but not available.
    """
    with workshop(scratch) as (place, room):
        order = order_for(argv, folder, readable, place, room, env or {}, limits)
        order["leftovers"] += map(os.path.abspath, disposable)
        with _Running(order, stdin, limits, argv[0]) as running:
            return running.result()


def probe() -> Confinement:
    """Start a program that does nothing, to find out which protections are available here, required or not.

    The program itself may fail to start: another user may not be allowed to run it.
    """
    command, limits = (sys.executable, "-I", "-S", "-c", ""), ProgramLimits()
    with workshop(None) as (place, room):
        order = order_for(command, Path(place), python_places(), place, room, {}, limits)
        with _Running({**order, "required": False}, b"", limits, command[0]) as running:
            return running.confinement()


def order_for(
    argv: Sequence[str],
    folder: Path,
    readable: Sequence[Path],
    place: str,
    room: str,
    env: Mapping[str, str],
    limits: ProgramLimits,
) -> dict[str, Any]:
    """Build the order for the launcher; the scratch and root folders are from `create_work_folders`."""
    program = find(argv[0])
    return {
        "argv": [program, *argv[1:]],
        "folder": os.path.abspath(folder),
        "env": {"PATH": PATH, "HOME": place, "TMPDIR": place, "LANG": "C.UTF-8", **env},
        "readable": _READABLE,
        "runnable": [*_RUNNABLE, program, os.path.abspath(folder), *map(os.path.abspath, readable)],
        "writable": [*_WRITABLE, place],
        "required": is_required(),
        "scratch": place,
        # Only for a temporary scratch folder: files in a caller's folder are needed after the run.
        "memory_folder": int(limits.scratch) if os.path.dirname(place) == os.path.dirname(room) else 0,
        "cgroup_parent": _find_cgroup_parent(),
        "room": room,
        "parent": os.getpid(),
        "leftovers": [os.path.dirname(room)],
        "needs": {name: int(getattr(limits, name)) or 1 for name in ("memory", "cpu", "scratch", "processes")},
    }


@cache
def _find_cgroup_parent() -> str:
    return find_parent()


def find(name: str) -> str:
    """Return the path of a program; a bare name is searched in PATH. Raises RefusedError if it does not exist."""
    found = os.path.abspath(name) if os.sep in name else shutil.which(name, path=os.environ.get("PATH", PATH))
    if not found or not os.access(found, os.X_OK) or os.path.isdir(found):
        raise RefusedError(f"{name}: program not found; install it, or correct its name")
    return found


def python_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of argosy; it needs the paths of `list_python_paths`."""
    return (sys.executable, "-I", "-B", "-X", "utf8", "-c", _MODULE, _HOME, module, *arguments)


def python_script(file: Path) -> tuple[str, ...]:
    """Return the command that runs a Python file without access to argosy's modules."""
    return (sys.executable, "-I", "-B", "-X", "utf8", str(file))


def python_places() -> tuple[Path, ...]:
    """List the paths of Python and of all installed modules."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    prefixes = {sys.prefix, sys.base_prefix, *(path for name in names if (path := sysconfig.get_path(name)))}
    return tuple(Path(path) for path in sorted({*prefixes, _HOME}))


@contextmanager
def workshop(scratch: Path | None) -> Iterator[tuple[str, str]]:
    """Create the scratch folder and an empty root folder for the launcher; both are removed afterwards."""
    with scratch_folder("argosy-run-") as own:
        os.chmod(own, 0o711)  # noqa: S103  # the program's user may pass through, but not list names
        place, room = os.path.join(own, "scratch"), os.path.join(own, "room")
        os.mkdir(room, 0o755)
        if scratch is None:
            os.mkdir(place, 0o700)
        else:
            place = os.path.abspath(scratch)
        if os.geteuid() == 0:
            os.chown(place, NOBODY, NOBODY)
        yield place, room


class _Running:
    """A launcher and the pipes to its program."""

    def __init__(self, order: Mapping[str, Any], stdin: bytes, limits: ProgramLimits, name: str) -> None:
        self._limits, self._name = limits, name
        self._unsent = memoryview(stdin)
        self._stdout: list[bytes] = []
        self._stderr, self._report = bytearray(), bytearray()
        self._size = 0
        self._control, theirs = socket.socketpair()
        with theirs:
            self._process = spawn(theirs)
        self._end = time.monotonic() + limits.wall
        text = marshal.dumps(dict(order))
        try:
            self._control.sendall(len(text).to_bytes(8, "big") + text)
        except OSError:
            pass  # the launcher could not start; the missing report shows it

    def __enter__(self) -> _Running:
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the socket; the launcher kills all processes and then exits."""
        self._control.shutdown(socket.SHUT_WR)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe and not pipe.closed:
                pipe.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()

    def confinement(self) -> Confinement:
        """Return the protections that were in force before the program started, even if the start failed."""
        report = self._finish()
        if "confinement" not in report:
            raise RefusedError(f"{self._name}: cannot be confined: {report.get('refused', 'it was killed')}")
        return _read_confinement(report["confinement"])

    def _finish(self) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            self._serve(selector)
        if not self._report:
            raise TransientError(f"{self._name}: the launcher process ended unexpectedly; try again")
        return dict(marshal.loads(self._report))  # noqa: S302  # from our own launcher

    def result(self) -> Finished:
        report = self._finish()
        stdout, stderr = b"".join(self._stdout), bytes(self._stderr[-_KEPT_STDERR:])
        if "unconfined" in report:
            raise NotConfinedError(report["unconfined"], where=self._name)
        if "refused" in report:
            raise RefusedError(f"{self._name}: cannot be started: {report['refused']}")
        if limit := self._limit_of(report, stderr):
            raise program_over(limit, self._limits, self._name)
        return Finished(report["code"], stdout, stderr, _read_confinement(report["confinement"]))

    def _limit_of(self, report: Mapping[str, Any], stderr: bytes) -> LimitName | None:
        if report["limit"] in ("memory", "scratch"):
            return "memory" if report["limit"] == "memory" else "scratch"
        code = report.get("code", 0)
        if _is(code, signal.SIGXCPU) or (_is(code, signal.SIGKILL) and report["cpu"] >= self._limits.cpu * 0.9):
            return "cpu"
        if _is(code, signal.SIGXFSZ):
            return "scratch"
        is_in_memory = report.get("confinement", {}).get("scratch_tmpfs")
        if code != 0 and is_in_memory and _NO_SPACE in stderr:
            return "scratch"
        if code != 0 and any(words in stderr for words in _OUT_OF_MEMORY):
            return "memory"
        return None

    def _serve(self, selector: selectors.BaseSelector) -> None:
        """Serve pipes until the launcher reports the end. Raises LimitExceeded on too much time or output."""
        process = self._process
        assert process.stdin and process.stdout and process.stderr
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
        self._control.setblocking(False)
        selector.register(process.stdin, selectors.EVENT_WRITE, self._write)
        selector.register(process.stdout, selectors.EVENT_READ, self._read_stdout)
        selector.register(process.stderr, selectors.EVENT_READ, self._read_stderr)
        selector.register(self._control, selectors.EVENT_READ, self._read_report)
        while selector.get_map():
            left = self._end - time.monotonic()
            if left <= 0:
                raise program_over("wall", self._limits, self._name)
            for key, _ in selector.select(left):
                if not key.data():
                    selector.unregister(key.fileobj)
                    if key.fileobj is process.stdin:
                        process.stdin.close()

    def _write(self) -> bool:
        assert self._process.stdin
        try:
            self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return True
        except OSError:
            return False  # the program closed its stdin
        return bool(self._unsent)

    def _read_stdout(self) -> bool:
        data = _read(self._process.stdout)
        self._size += len(data)
        if self._size > self._limits.output:
            raise program_over("output", self._limits, self._name)
        self._stdout.append(data)
        return bool(data)

    def _read_stderr(self) -> bool:
        data = _read(self._process.stderr)
        self._stderr += data
        if len(self._stderr) > 4 * _KEPT_STDERR:
            del self._stderr[:-_KEPT_STDERR]
        return bool(data)

    def _read_report(self) -> bool:
        try:
            data = self._control.recv(_CHUNK)
        except OSError:
            return False
        self._report += data
        return bool(data)


def _read_confinement(force: Mapping[str, Any]) -> Confinement:
    sentences = {name: tuple(force.get(name, ())) for name in ("missing", "optional_missing")}
    return Confinement(**{**force, **sentences})


def _is(code: int, number: signal.Signals) -> bool:
    """True if the program was ended by this signal, or is a shell that reports it for its child."""
    return code in (-number, 128 + number)


def _read(pipe: IO[bytes] | None) -> bytes:
    return os.read(pipe.fileno(), _CHUNK) if pipe else b""


def spawn(control: socket.socket, *passed: socket.socket, merged: bool = False) -> subprocess.Popen[bytes]:
    """Start the launcher; the program inherits the `passed` sockets under the same numbers."""
    descriptor = control.fileno()
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT, str(descriptor), _HOME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merged else subprocess.PIPE,
        pass_fds=(descriptor, *(each.fileno() for each in passed)),
        env={},
        cwd="/",
        bufsize=0,
        start_new_session=True,  # Ctrl-C must only reach the parent, which then closes the socket
    )
