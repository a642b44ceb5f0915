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

from argosy.isolation import (
    confinement_requirement,
    cpu_priority,
    landlock,
    message_frames,
    process_confinement,
    worker,
)

_MAX_CONTROL_BYTES = 1 << 20
# Modules that the standard library imports late, during ordinary calls: a confined worker may not be able to read them.
_PRELOADED_MODULES = (
    "_strptime",
    "base64",
    "datetime",
    "decimal",
    "encodings.idna",
    "encodings.latin_1",
    "random",
    "zoneinfo",
)
_SHARED_PATHS = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/localtime",
)


class ForkServer:
    """The main loop of the process. Its only state: the living workers, and the folders that they may read."""

    def __init__(self, control: socket.socket, *, is_confinement_required: bool) -> None:
        self._control, self._is_confinement_required = control, is_confinement_required
        self._inbox = message_frames.FrameBuffer(_MAX_CONTROL_BYTES)
        self._workers: dict[int, int] = {}  # the parent's number for a worker → its pid
        self._readable = set(_SHARED_PATHS) | _list_python_folders()
        self._abi = landlock.find_abi_version()
        self._rules: int | None = None
        self._offline = process_confinement.enter_empty_network()

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
                if self._control.fileno() in ready and not self._handle_orders():
                    return
        finally:
            self._kill_all()

    def _handle_orders(self) -> bool:
        data = self._control.recv(1 << 16)
        self._inbox.feed(data)
        for frame in self._inbox.read_frames():
            order = orjson.loads(frame)
            {"load": self._load, "fork": self._fork, "lower": self._lower_priority, "kill": self._kill}[order["do"]](
                order
            )
        return bool(data)

    def _load(self, order: dict[str, Any]) -> None:
        for name in order["modules"]:
            try:
                module = import_module(name)
            except BaseException as problem:  # whatever a module raises during its import, the server continues
                self._send(
                    {"failed": f"{name}: {type(problem).__name__}: {problem}"[: message_frames.MAX_ERROR_CHARACTERS]}
                )
                return
            self._readable |= _list_module_paths(module)
        if self._rules is not None:
            os.close(self._rules)
        self._rules = landlock.build_ruleset(sorted(self._readable), self._abi) if self._abi else None
        gc.collect()
        gc.freeze()  # else the first collection in each worker would copy every page of the heap
        self._send({"loaded": order["modules"]})

    def _fork(self, order: dict[str, Any]) -> None:
        parent_socket, worker_socket = socket.socketpair()
        with parent_socket, worker_socket:
            server = os.getpid()
            try:
                pid = os.fork()
            except OSError as problem:
                self._send({"failed": f"no new process: {problem}"})
                return
            if pid == 0:
                self._become_worker(server, worker_socket, order)
            self._workers[order["number"]] = pid
            self._send({"forked": order["number"], "pid": pid}, parent_socket.fileno())

    def _become_worker(self, server: int, channel: socket.socket, order: dict[str, Any]) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            report = process_confinement.confine_worker(
                server, needs=order["needs"], rules=self._rules, abi=self._abi, offline=self._offline
            )
            _close_other_descriptors(channel.fileno())
            if self._is_confinement_required and (lacking := confinement_requirement.find_missing_protections(report)):
                worker.refuse_calls(channel, confinement_requirement.render_refusal(lacking))
            worker.serve_calls(channel, report)
        finally:
            os._exit(70)

    def _lower_priority(self, order: dict[str, Any]) -> None:
        pid = self._workers.get(order["number"])
        if pid is not None:
            cpu_priority.lower_group_priorities({pid})
            cpu_priority.lower_session(pid)

    def _kill(self, order: dict[str, Any]) -> None:
        pid = self._workers.get(order["number"])
        if pid is not None:  # not reaped yet, so the pid still belongs to this worker
            _kill_worker(pid)

    def _reap(self) -> None:
        for number, pid in list(self._workers.items()):
            _kill_leftovers(pid)
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                del self._workers[number]
                self._send({"ended": number, "status": os.waitstatus_to_exitcode(status)})

    def _kill_all(self) -> None:
        for pid in self._workers.values():
            _kill_worker(pid)
        for pid in self._workers.values():
            os.waitpid(pid, 0)

    def _send(self, message: dict[str, Any], *descriptors: int) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the parent has ended; the loop notices next
            socket.send_fds(self._control, [message_frames.pack_message(message)], list(descriptors))


def _kill_leftovers(pid: int) -> None:
    """If a worker ended, kill its process group before it is reaped: until then the pid cannot be reused."""
    if sys.platform == "linux" and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        _kill_worker(pid)


def _kill_worker(pid: int) -> None:
    """Kill the worker, and processes that it forked if the kernel could not forbid that."""
    os.kill(pid, signal.SIGKILL)  # it may not lead its process group yet
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _list_python_folders() -> set[str]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return {path for name in names if (path := sysconfig.get_path(name))} | {os.path.dirname(os.path.dirname(__file__))}


def _list_module_paths(module: Any) -> set[str]:
    """Return the paths of a module's top-level package: never a folder that contains anything else."""
    top = sys.modules.get(module.__name__.partition(".")[0], module)
    paths = list(getattr(top, "__path__", ())) or [getattr(top, "__file__", None)]
    return {path for path in paths if path}


def _close_other_descriptors(kept_descriptor: int) -> None:
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 16)
    os.closerange(3, kept_descriptor)
    os.closerange(kept_descriptor + 1, max(highest, 1 << 12))


def main(descriptor: int) -> None:
    """Entry point of the process; the first control frame contains the parent's pid and the module search path."""
    control = socket.socket(fileno=descriptor)
    (length,) = message_frames.LENGTH.unpack(control.recv(4, socket.MSG_WAITALL))
    hello = orjson.loads(control.recv(length, socket.MSG_WAITALL))
    process_confinement.exit_with_parent(hello["parent"])
    os.environ.clear()
    sys.path[:] = hello["path"]
    for name in _PRELOADED_MODULES:
        import_module(name)
    ForkServer(control, is_confinement_required=hello.get("required", True)).serve()
