"""Runs argosy commands without import time: each is forked from a process that has imported argosy.

In: command line arguments, an environment, a folder; a bug to plant. Out: the output of the forked process, and its
exit code.
Never: starts the script itself; tests of startup or termination use `support.clusters.ARGOSY`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from support.deadlines import HANG_SECONDS

ARGOSY = Path(sys.executable).parent / "argosy"
# Packages that are imported with all their modules, and libraries that commands import lazily: each command would
# spend a third of a second on them.
SHARED = ("analysis", "application_client", "cluster_view", "coexistence", "delivery_file", "engine")
SHARED += ("reconciler", "redaction", "workspace")
WHOLE = ("argosy.cli", "argosy.features", "argosy.sandbox.simulators")
WHOLE += tuple(f"argosy.gitops.{package}" for package in SHARED)
BESIDE = ("aiohttp", "uvloop", "uvicorn", "lupa", "cel")
NOT_HERE = "argosy.features.notebooks.runner"  # runs only in the notebook process
READY = b"ready"
MOST = 100_000  # bytes of a request
MOST_GIVEN = 60_000  # bytes on stdin: the capacity of a pipe


class Done(NamedTuple):
    """Like subprocess.CompletedProcess."""

    returncode: int
    stdout: str
    stderr: str


# -- in the test process


class _Ready:
    """The process that is forked: one for all tests of this process."""

    def __init__(self) -> None:
        self._door, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        roads = os.pathsep.join(filter(None, sys.path))
        env = {**os.environ, "PYTHONPATH": roads, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, __file__, str(its.fileno())]
        self.process = subprocess.Popen(command, env=env, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)
        its.close()
        assert self._door.recv(100) == READY, "the process that is to be copied did not start; its last words are above"
        self._turn = threading.Lock()
        atexit.register(self.end)

    def begin(self, request: Mapping[str, Any], streams: Sequence[int]) -> socket.socket:
        """Start a command; return the descriptor that reports its end."""
        own_end, its = socket.socketpair()
        with its, self._turn:
            socket.send_fds(self._door, [json.dumps(request).encode()], [*streams, its.fileno()])
        return own_end

    def end(self) -> None:
        self._door.close()
        self.process.wait()


_ready: list[_Ready] = []
_making = threading.Lock()


def wait_until_ready() -> None:
    """For tests that measure the time of a command."""
    _one()


def _one() -> _Ready:
    with _making:
        if not _ready:
            _ready.append(_Ready())
        return _ready[0]


class Started:
    """A running command, like subprocess.Popen."""

    def __init__(
        self, words: Sequence[object], env: Mapping[str, str], cwd: Path | None, streams: Sequence[int], bug: str = ""
    ) -> None:
        self.args = [str(word) for word in words]
        request = {"words": self.args, "env": dict(env), "cwd": str(cwd or os.getcwd()), "bug": bug}
        self._ends = _one().begin(request, streams)
        self._said = self._ends.makefile("r")
        first = self._said.readline()
        assert first, "the process that is copied has ended; its last words are above"
        self.pid = int(first)
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._has_ended(0):
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not self._has_ended(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(self._said.readline())
            self._said.close()
            self._ends.close()
        return self.returncode

    def _has_ended(self, timeout: float | None) -> bool:
        looks = select.poll()  # there may be more descriptors than select supports
        looks.register(self._ends, select.POLLIN)
        return bool(looks.poll(None if timeout is None else timeout * 1000))

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def start(
    words: Sequence[object], *, env: Mapping[str, str], stderr: int, cwd: Path | None = None, bug: str = ""
) -> Started:
    """Start a command with a pipe for its output. A `bug` is Python code that breaks the process before it begins."""
    reads, writes = os.pipe()
    with open(os.devnull) as nothing:
        try:
            started = Started(words, env, cwd, [nothing.fileno(), writes, stderr], bug)
        finally:
            os.close(writes)
    started.stdout = open(reads)  # noqa: SIM115
    return started


def run(
    words: Sequence[object],
    *,
    env: Mapping[str, str],
    cwd: Path | None = None,
    input: str | None = None,
    timeout: float = HANG_SECONDS,
) -> Done:
    data = _given(input)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            started = Started(words, env, cwd, [data, out.fileno(), err.fileno()])
        finally:
            os.close(data)
        try:
            code = started.wait(timeout)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
            raise
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(io.TextIOWrapper(file, encoding="utf-8").read())  # with universal newlines
    return Done(code, *texts)


def _given(text: str | None) -> int:
    if text is None:
        return os.open(os.devnull, os.O_RDONLY)
    data = text.encode()
    assert len(data) <= MOST_GIVEN, "more than a pipe holds"
    reads, writes = os.pipe()
    os.write(writes, data)
    os.close(writes)
    return reads


# -- in the process that is forked


def _serve(door: socket.socket) -> None:
    """Serve requests until the test process has ended."""
    for package in WHOLE:
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            if not module.name.startswith(NOT_HERE):
                importlib.import_module(module.name)
    for library in BESIDE:
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    gc.collect()
    gc.freeze()
    door.send(READY)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the test process, which then ends
    woken, wakes = socket.socketpair()
    for endpoint in (woken, wakes):
        endpoint.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waiting: dict[int, socket.socket] = {}
    while True:
        readable, _, _ = select.select([door, woken], [], [])
        if woken in readable:
            woken.recv(1000)
            _tell_ends(waiting)
        if door in readable:
            data, streams, _, _ = socket.recv_fds(door, MOST, 4)
            if not data:
                return
            pid = os.fork()
            if pid == 0:
                for endpoint in (door, woken, wakes, *waiting.values()):
                    endpoint.close()
                os.close(streams.pop())
                _become(json.loads(data), streams)
            for stream in streams[:3]:
                os.close(stream)
            waiting[pid] = socket.socket(fileno=streams[3])
            waiting[pid].sendall(f"{pid}\n".encode())


def _tell_ends(waiting: dict[int, socket.socket]) -> None:
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with waiting.pop(pid) as client:
            try:
                client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            except OSError:
                pass  # the test process no longer waits


def _become(request: Any, streams: Sequence[int]) -> NoReturn:
    """Run the command, in the state after its imports."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        old = getattr(sys, name)
        new = open(number, mode, 1 if number == 2 else -1, encoding=old.encoding, errors=old.errors)  # noqa: SIM115
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv[:] = [str(ARGOSY), *request["words"]]
    exec(request["bug"], {"__name__": "bug"})
    from argosy.main import main

    code = main()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)  # without tearing down the imported modules


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
