"""Runs one model server process and keeps it alive; its socket survives a restart of the process.

In: model sources. Out: a local port that responds. Never: runs a model in this process; leaves a process behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Container
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import argosy
from argosy.errors import ArgosyError
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.long_running_program import (
    NO_WALL_LIMIT_SECONDS,
    LongRunningProgram,
    ProgramAccess,
    ProgramExit,
    start_program,
)
from argosy.isolation.untrusted_program_runner import list_python_paths
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.sandbox.simulators.kserve.model_file_or_stub import ModelSource
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE

# The limit counts all processes and threads of the user, including other models and sandboxes.
MODEL_SERVER_LIMITS: Final = ProgramLimits(cpu=NO_WALL_LIMIT_SECONDS, memory=1 << 30, scratch=64 << 20, processes=1024)
LOOPBACK: Final = "127.0.0.1"
SOCKET_BACKLOG: Final = 64  # connections that wait while the process starts
INITIAL_RESTART_SECONDS, MAX_RESTART_SECONDS = 0.2, 30.0
STABLE_RUN_SECONDS: Final = 60.0  # a process that ran this long resets the restart delay
# On a machine with many cores, each library would start threads and use memory beyond the limit.
SINGLE_THREAD_ENV: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
SOURCE_FOLDER: Final = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
# Parent packages are empty stubs: their imports would make this small process large.
BOOT_SCRIPT: Final = """import sys, types
for name in ("argosy", "argosy.sandbox", "argosy.sandbox.simulators"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
from argosy.sandbox.simulators.model_server.server import main
main(int(sys.argv[2]))
"""


class ModelServerProcess:
    """One process and its port, for one model file or for all stubs."""

    def __init__(self, *folders: str, port: int = 0, on_output: Callable[[bytes], None] | None = None) -> None:
        """Use `port` if it is free, because users know it already; otherwise any port."""
        self._on_output = on_output
        self._folders = [Path(folder) for folder in folders]
        self._socket = _open_listening_socket(port)
        self.port = int(self._socket.getsockname()[1])
        self.sources: dict[str, ModelSource] = {}
        self.problem = ""  # why the process ended; empty: it runs or has not started
        self._process: LongRunningProgram | None = None
        self._is_restarting = False
        self._supervisor = asyncio.create_task(self._supervise(), name="answerer")

    async def serve(self, source: ModelSource) -> None:
        self.sources[source.host] = source
        if self._process is not None:
            await self._process.write_line(_source_to_line(source))

    async def restart_for(self, source: ModelSource) -> None:
        """Restart the process for this model only, at the same address; requests wait meanwhile."""
        self.sources = {source.host: source}
        self._folders = [Path(source.folder)]
        old_process, self._process = self._process, None
        if old_process is not None:
            self._is_restarting = True
            await old_process.kill()

    async def forget(self, host: str) -> None:
        self.sources.pop(host, None)
        if self._process is not None:
            await self._process.write_line(json.dumps({"forget": host}).encode())

    async def end(self) -> None:
        self._supervisor.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._supervisor
        self._socket.close()

    async def _supervise(self) -> None:
        delay = INITIAL_RESTART_SECONDS
        try:
            while True:
                started_at = time.monotonic()
                self.problem = await self._run_once()
                if self._is_restarting:
                    self.problem, self._is_restarting = "", False
                    continue
                self._log(f"model server process {self.problem}; restarting")
                delay = (
                    INITIAL_RESTART_SECONDS
                    if time.monotonic() - started_at > STABLE_RUN_SECONDS
                    else min(delay * 2, MAX_RESTART_SECONDS)
                )
                await asyncio.sleep(delay)
        finally:
            if self._process is not None:
                await self._process.kill()

    async def _run_once(self) -> str:
        """Run one process until it ends; return why it ended."""
        try:
            process = self._process = await self._start()  # from here on, `serve` also sends to it
            for source in list(self.sources.values()):
                await process.write_line(_source_to_line(source))
        except (OSError, ArgosyError) as error:
            return f"could not be started: {error}"
        ended = await asyncio.shield(process.exit_task)
        return _describe_end(ended, _find_last_output_line(process.read_output_tail(), self.sources))

    async def _start(self) -> LongRunningProgram:
        isolation_flags = () if self._folders else ("-S",)  # site-packages are only needed for model files
        # unbuffered: lines appear when they are printed
        flags = ("-I", "-B", "-u", *isolation_flags, "-X", "utf8")
        argv = (sys.executable, *flags, "-c", BOOT_SCRIPT, SOURCE_FOLDER, str(self._socket.fileno()))
        readable = (*list_python_paths(), *self._folders)
        surroundings = ProgramAccess(env=SINGLE_THREAD_ENV if self._folders else {}, on_output=self._on_output)
        sockets = [self._socket]
        return await start_program(
            argv,
            folder=Path(SOURCE_FOLDER),
            readable=readable,
            sockets=sockets,
            limits=MODEL_SERVER_LIMITS,
            access=surroundings,
        )

    def _log(self, text: str) -> None:
        handle_output = self._on_output or (lambda _: None)
        for host in self.sources:
            handle_output(f"{host} {format_timestamp(datetime.now(UTC))} {text}\n".encode())

    def is_running(self) -> bool:
        return self._process is not None and self._process.is_running


def _open_listening_socket(port: int) -> socket.socket:
    with contextlib.suppress(OSError):
        return socket.create_server((LOOPBACK, port), backlog=SOCKET_BACKLOG)
    return socket.create_server((LOOPBACK, 0), backlog=SOCKET_BACKLOG)


def _source_to_line(source: ModelSource) -> bytes:
    return json.dumps(
        {"host": source.host, "name": source.name, "source": source.location, "folder": source.folder}
    ).encode()


def _find_last_output_line(output: str, hosts: Container[str]) -> str:
    """Return the last line of output, ignoring start messages, which say nothing about the end."""
    for line in reversed(output.splitlines()):
        host, _, message = line.partition(" ")
        text = message.partition(" ")[2] if host in hosts else line
        if text.strip() and not text.endswith(f"({SIMULATED_NOTE})"):
            return text.strip()
    return ""


def _describe_end(ended: ProgramExit, last_line: str) -> str:
    if ended.refused:
        return f"could not be started: {ended.refused}"
    if ended.limit:
        return f"exceeded its {ended.limit} limit"
    return f"exited with code {ended.code}{f': {last_line[:300]}' if last_line else ''}"
