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
from argosy.isolation.cgroup import find_delegated_parent
from argosy.isolation.confinement_requirement import is_required
from argosy.isolation.errors import LimitName, NotConfinedError, RefusedError, build_program_limit_error
from argosy.isolation.limit_and_confinement_types import Confinement, ProgramLimits
from argosy.isolation.process_confinement import NOBODY_ID
from argosy.isolation.scratch_folders import create_scratch_folder

DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_RUNNABLE = (
    "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64",
    "/usr/libexec", "/usr/local/bin", "/usr/local/lib",
)  # fmt: skip
_READABLE = (
    "/usr/share", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
    "/dev/zero", "/dev/random", "/dev/urandom",
)  # fmt: skip
_WRITABLE = ("/dev/null",)
_BOOT_CODE = (
    "import sys; sys.path.append(sys.argv[2]); "
    "from argosy.isolation.confined_program_launcher import main; main(int(sys.argv[1]))"
)
_RUN_MODULE_CODE = (
    "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module(sys.argv.pop(1), None, '__main__', True)"
)
_PACKAGE_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
_CHUNK_BYTES = 1 << 16
_KEPT_STDERR_BYTES = 64 << 10
_LAUNCHER_EXIT_SECONDS = 10.0  # seconds for the launcher to kill all processes
_NO_SPACE_MESSAGE = b"No space left on device"
_OUT_OF_MEMORY_MESSAGES = (
    b"runtime: out of memory",
    b"runtime: cannot allocate memory",
    b"\nMemoryError",
    b"std::bad_alloc",
)


@dataclass(frozen=True, slots=True)
class ProgramResult:
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
) -> ProgramResult:
    """Run a program in `folder`. It may read `folder`, `readable`, and the system's programs and libraries.

    It may write only to `scratch`, which is also its HOME. The launcher removes `disposable` folders if this process
    is killed meanwhile. Raises LimitExceeded; RefusedError if it cannot be started; NotConfinedError if confinement is
    required but not available.
    """
    with create_work_folders(scratch) as (scratch_path, root_folder):
        order = build_launcher_order(argv, folder, readable, scratch_path, root_folder, env or {}, limits)
        order["leftovers"] += map(os.path.abspath, disposable)
        with _RunningProgram(order, stdin, limits, argv[0]) as running:
            return running.result()


def probe_confinement() -> Confinement:
    """Start a program that does nothing, to find out which protections are available here, required or not.

    The program itself may fail to start: another user may not be allowed to run it.
    """
    command, limits = (sys.executable, "-I", "-S", "-c", ""), ProgramLimits()
    with create_work_folders(None) as (scratch_path, root_folder):
        order = build_launcher_order(
            command, Path(scratch_path), list_python_paths(), scratch_path, root_folder, {}, limits
        )
        with _RunningProgram({**order, "required": False}, b"", limits, command[0]) as running:
            return running.confinement()


def build_launcher_order(
    argv: Sequence[str],
    folder: Path,
    readable: Sequence[Path],
    scratch: str,
    root_folder: str,
    env: Mapping[str, str],
    limits: ProgramLimits,
) -> dict[str, Any]:
    """Build the order for the launcher; the scratch and root folders are from `create_work_folders`."""
    program = find_program(argv[0])
    return {
        "argv": [program, *argv[1:]],
        "folder": os.path.abspath(folder),
        "env": {"PATH": DEFAULT_PATH, "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8", **env},
        "readable": _READABLE,
        "runnable": [*_RUNNABLE, program, os.path.abspath(folder), *map(os.path.abspath, readable)],
        "writable": [*_WRITABLE, scratch],
        "required": is_required(),
        "scratch": scratch,
        # Only for a temporary scratch folder: files in a caller's folder are needed after the run.
        "memory_folder": int(limits.scratch) if os.path.dirname(scratch) == os.path.dirname(root_folder) else 0,
        "cgroup_parent": _find_cgroup_parent(),
        "room": root_folder,
        "parent": os.getpid(),
        "leftovers": [os.path.dirname(root_folder)],
        "needs": {name: int(getattr(limits, name)) or 1 for name in ("memory", "cpu", "scratch", "processes")},
    }


@cache
def _find_cgroup_parent() -> str:
    return find_delegated_parent()


def find_program(name: str) -> str:
    """Return the path of a program; a bare name is searched in PATH. Raises RefusedError if it does not exist."""
    path = os.path.abspath(name) if os.sep in name else shutil.which(name, path=os.environ.get("PATH", DEFAULT_PATH))
    if not path or not os.access(path, os.X_OK) or os.path.isdir(path):
        raise RefusedError(f"{name}: program not found; install it, or correct its name")
    return path


def build_module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module of argosy; it needs the paths of `list_python_paths`."""
    return (sys.executable, "-I", "-B", "-X", "utf8", "-c", _RUN_MODULE_CODE, _PACKAGE_ROOT, module, *arguments)


def build_script_command(file: Path) -> tuple[str, ...]:
    """Return the command that runs a Python file without access to argosy's modules."""
    return (sys.executable, "-I", "-B", "-X", "utf8", str(file))


def list_python_paths() -> tuple[Path, ...]:
    """List the paths of Python and of all installed modules."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    prefixes = {sys.prefix, sys.base_prefix, *(path for name in names if (path := sysconfig.get_path(name)))}
    return tuple(Path(path) for path in sorted({*prefixes, _PACKAGE_ROOT}))


@contextmanager
def create_work_folders(scratch: Path | None) -> Iterator[tuple[str, str]]:
    """Create the scratch folder and an empty root folder for the launcher; both are removed afterwards."""
    with create_scratch_folder("argosy-run-") as folder:
        os.chmod(folder, 0o711)  # noqa: S103  # the program's user may pass through, but not list names
        scratch_path, root_folder = os.path.join(folder, "scratch"), os.path.join(folder, "room")
        os.mkdir(root_folder, 0o755)
        if scratch is None:
            os.mkdir(scratch_path, 0o700)
        else:
            scratch_path = os.path.abspath(scratch)
        if os.geteuid() == 0:
            os.chown(scratch_path, NOBODY_ID, NOBODY_ID)
        yield scratch_path, root_folder


class _RunningProgram:
    """A launcher and the pipes to its program."""

    def __init__(self, order: Mapping[str, Any], stdin: bytes, limits: ProgramLimits, name: str) -> None:
        self._limits, self._name = limits, name
        self._unsent = memoryview(stdin)
        self._stdout: list[bytes] = []
        self._stderr, self._report = bytearray(), bytearray()
        self._size = 0
        self._control, launcher_socket = socket.socketpair()
        with launcher_socket:
            self._process = spawn_launcher(launcher_socket)
        self._deadline = time.monotonic() + limits.wall
        encoded_order = marshal.dumps(dict(order))
        try:
            self._control.sendall(len(encoded_order).to_bytes(8, "big") + encoded_order)
        except OSError:
            pass  # the launcher could not start; the missing report shows it

    def __enter__(self) -> _RunningProgram:
        return self

    def __exit__(self, *problem: object) -> None:
        """Close the socket; the launcher kills all processes and then exits."""
        self._control.shutdown(socket.SHUT_WR)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe and not pipe.closed:
                pipe.close()
        try:
            self._process.wait(_LAUNCHER_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._control.close()

    def confinement(self) -> Confinement:
        """Return the protections that were in force before the program started, even if the start failed."""
        report = self._wait_for_report()
        if "confinement" not in report:
            raise RefusedError(f"{self._name}: cannot be confined: {report.get('refused', 'it was killed')}")
        return _read_confinement(report["confinement"])

    def _wait_for_report(self) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            self._serve(selector)
        if not self._report:
            raise TransientError(f"{self._name}: the launcher process ended unexpectedly; try again")
        return dict(marshal.loads(self._report))  # noqa: S302  # from our own launcher

    def result(self) -> ProgramResult:
        report = self._wait_for_report()
        stdout, stderr = b"".join(self._stdout), bytes(self._stderr[-_KEPT_STDERR_BYTES:])
        if "unconfined" in report:
            raise NotConfinedError(report["unconfined"], where=self._name)
        if "refused" in report:
            raise RefusedError(f"{self._name}: cannot be started: {report['refused']}")
        if limit := self._find_exceeded_limit(report, stderr):
            raise build_program_limit_error(limit, self._limits, self._name)
        return ProgramResult(report["code"], stdout, stderr, _read_confinement(report["confinement"]))

    def _find_exceeded_limit(self, report: Mapping[str, Any], stderr: bytes) -> LimitName | None:
        if report["limit"] in ("memory", "scratch"):
            return "memory" if report["limit"] == "memory" else "scratch"
        code = report.get("code", 0)
        if _was_ended_by(code, signal.SIGXCPU) or (
            _was_ended_by(code, signal.SIGKILL) and report["cpu"] >= self._limits.cpu * 0.9
        ):
            return "cpu"
        if _was_ended_by(code, signal.SIGXFSZ):
            return "scratch"
        is_in_memory = report.get("confinement", {}).get("scratch_tmpfs")
        if code != 0 and is_in_memory and _NO_SPACE_MESSAGE in stderr:
            return "scratch"
        if code != 0 and any(words in stderr for words in _OUT_OF_MEMORY_MESSAGES):
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
            seconds_left = self._deadline - time.monotonic()
            if seconds_left <= 0:
                raise build_program_limit_error("wall", self._limits, self._name)
            for key, _ in selector.select(seconds_left):
                if not key.data():
                    selector.unregister(key.fileobj)
                    if key.fileobj is process.stdin:
                        process.stdin.close()

    def _write(self) -> bool:
        assert self._process.stdin
        try:
            self._unsent = self._unsent[os.write(self._process.stdin.fileno(), self._unsent[:_CHUNK_BYTES]) :]
        except BlockingIOError:
            return True
        except OSError:
            return False  # the program closed its stdin
        return bool(self._unsent)

    def _read_stdout(self) -> bool:
        data = _read(self._process.stdout)
        self._size += len(data)
        if self._size > self._limits.output:
            raise build_program_limit_error("output", self._limits, self._name)
        self._stdout.append(data)
        return bool(data)

    def _read_stderr(self) -> bool:
        data = _read(self._process.stderr)
        self._stderr += data
        if len(self._stderr) > 4 * _KEPT_STDERR_BYTES:
            del self._stderr[:-_KEPT_STDERR_BYTES]
        return bool(data)

    def _read_report(self) -> bool:
        try:
            data = self._control.recv(_CHUNK_BYTES)
        except OSError:
            return False
        self._report += data
        return bool(data)


def _read_confinement(force: Mapping[str, Any]) -> Confinement:
    sentences = {name: tuple(force.get(name, ())) for name in ("missing", "optional_missing")}
    return Confinement(**{**force, **sentences})


def _was_ended_by(code: int, signal_number: signal.Signals) -> bool:
    """True if the program was ended by this signal, or is a shell that reports it for its child."""
    return code in (-signal_number, 128 + signal_number)


def _read(pipe: IO[bytes] | None) -> bytes:
    return os.read(pipe.fileno(), _CHUNK_BYTES) if pipe else b""


def spawn_launcher(
    control: socket.socket, *sockets: socket.socket, merge_stderr: bool = False
) -> subprocess.Popen[bytes]:
    """Start the launcher; the program inherits the given sockets under the same numbers."""
    descriptor = control.fileno()
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT_CODE, str(descriptor), _PACKAGE_ROOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
        pass_fds=(descriptor, *(passed_socket.fileno() for passed_socket in sockets)),
        env={},
        cwd="/",
        bufsize=0,
        start_new_session=True,  # Ctrl-C must only reach the parent, which then closes the socket
    )
