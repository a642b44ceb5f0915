"""The fork server: a small process that loads trusted modules once and forks confined workers on demand.

In: control frames (load, fork, lower, kill). Out: one reply to each load and fork, and a message for each ended worker.
Never: runs a payload itself; outlives its parent; leaves a zombie.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
from importlib import import_module
from typing import Any, NoReturn

import orjson

from argosy.isolation import cpu_priority, frames, landlock, requirement, restrictions, worker

_CONTROL_LIMIT = 1 << 20
# Modules that the standard library imports late, during ordinary calls: a confined worker may not be able to read them.
_STANDARD = ("_strptime", "base64", "datetime", "decimal", "encodings.idna", "encodings.latin_1", "random", "zoneinfo")
_SHARED = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime")


class ForkServer:
    """The main loop of the process. Its only state: the living workers, and the folders that they may read."""

    def __init__(self, control: socket.socket, *, is_confinement_required: bool) -> None:
        self._control, self._is_confinement_required = control, is_confinement_required
        self._inbox = frames.Inbox(_CONTROL_LIMIT)
        self._workers: dict[int, int] = {}  # the parent's number for a worker → its pid
        self._readable = set(_SHARED) | _own_directories()
        self._abi = landlock.abi()
        self._rules: int | None = None
        self._offline = restrictions.leave_network()

    def serve(self) -> None:
        """Serve until the parent closes the socket; then kill every worker."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(wake_read, select.POLLIN)
        try:
            while True:
                ready = {number for number, _ in poller.poll()}
                if wake_read in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                    self._reap()
                if self._control.fileno() in ready and not self._obey():
                    return
        finally:
            self._end_all()

    def _obey(self) -> bool:
        data = self._control.recv(1 << 16)
        self._inbox.feed(data)
        for frame in self._inbox.frames():
            order = orjson.loads(frame)
            {"load": self._load, "fork": self._fork, "lower": self._lower, "kill": self._kill}[order["do"]](order)
        return bool(data)

    def _load(self, order: dict[str, Any]) -> None:
        for name in order["modules"]:
            try:
                module = import_module(name)
            except BaseException as problem:  # whatever a module raises during its import, the server continues
                self._say({"failed": f"{name}: {type(problem).__name__}: {problem}"[: frames.TEXT_LIMIT]})
                return
            self._readable |= _home(module)
        if self._rules is not None:
            os.close(self._rules)
        self._rules = landlock.ruleset(sorted(self._readable), self._abi) if self._abi else None
        gc.collect()
        gc.freeze()  # else the first collection in each worker would copy every page of the heap
        self._say({"loaded": order["modules"]})

    def _fork(self, order: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server = os.getpid()
            try:
                pid = os.fork()
            except OSError as problem:
                self._say({"failed": f"no new process: {problem}"})
                return
            if pid == 0:
                self._become_worker(server, theirs, order)
            self._workers[order["number"]] = pid
            self._say({"forked": order["number"], "pid": pid}, ours.fileno())

    def _become_worker(self, server: int, channel: socket.socket, order: dict[str, Any]) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            report = restrictions.enter(
                server, needs=order["needs"], rules=self._rules, abi=self._abi, offline=self._offline
            )
            _close_all_but(channel.fileno())
            if self._is_confinement_required and (lacking := requirement.find_lacking(report)):
                worker.refuse(channel, requirement.render_refusal(lacking))
            worker.serve(channel, report)
        finally:
            os._exit(70)

    def _lower(self, order: dict[str, Any]) -> None:
        pid = self._workers.get(order["number"])
        if pid is not None:
            cpu_priority.lower_groups({pid})
            cpu_priority.lower_session(pid)

    def _kill(self, order: dict[str, Any]) -> None:
        pid = self._workers.get(order["number"])
        if pid is not None:  # not reaped yet, so the pid still belongs to this worker
            _kill_all_of(pid)

    def _reap(self) -> None:
        for number, pid in list(self._workers.items()):
            _kill_what_it_left(pid)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self._workers[number]
                self._say({"ended": number, "status": os.waitstatus_to_exitcode(status)})

    def _end_all(self) -> None:
        for pid in self._workers.values():
            _kill_all_of(pid)
        for pid in self._workers.values():
            os.waitpid(pid, 0)

    def _say(self, message: dict[str, Any], *descriptors: int) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent has ended; the loop notices next
            socket.send_fds(self._control, [frames.pack(message)], list(descriptors))


def _kill_what_it_left(pid: int) -> None:
    """If a worker ended, kill its process group before it is reaped: until then the pid cannot be reused."""
    if sys.platform == "linux" and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        _kill_all_of(pid)


def _kill_all_of(pid: int) -> None:
    """Kill the worker, and processes that it forked if the kernel could not forbid that."""
    os.kill(pid, signal.SIGKILL)  # it may not lead its process group yet
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _own_directories() -> set[str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return {path for name in names if (path := sysconfig.get_path(name))} | {os.path.dirname(os.path.dirname(__file__))}


def _home(module: Any) -> set[str]:
    """Return the paths of a module's top-level package: never a folder that contains anything else."""
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    places = list(getattr(top, "__path__", ())) or [getattr(top, "__file__", None)]
    return {place for place in places if place}


def _close_all_but(kept: int) -> None:
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 16)
    os.closerange(3, kept)
    os.closerange(kept + 1, max(highest, 1 << 12))


def main(descriptor: int) -> None:
    """Entry point of the process; the first control frame contains the parent's pid and the module search path."""
    control = socket.socket(fileno=descriptor)
    (length,) = frames.LENGTH.unpack(control.recv(4, socket.MSG_WAITALL))
    hello = orjson.loads(control.recv(length, socket.MSG_WAITALL))
    restrictions.die_with(hello["parent"])
    os.environ.clear()
    sys.path[:] = hello["path"]
    for name in _STANDARD:
        import_module(name)
    ForkServer(control, is_confinement_required=hello.get("required", True)).serve()
