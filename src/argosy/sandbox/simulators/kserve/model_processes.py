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
from argosy.isolation.limits import ProgramLimits
from argosy.isolation.long_running import DAYS, Ended, Resident, Surroundings, start
from argosy.isolation.program import python_places
from argosy.sandbox.simulators.constants import BY
from argosy.sandbox.simulators.kserve.model_source import Plan
from argosy.sandbox.simulators.timestamps import stamp

# The limit counts all processes and threads of the user, including other models and sandboxes.
LIMITS: Final = ProgramLimits(cpu=DAYS, memory=1 << 30, scratch=64 << 20, processes=1024)
LOOPBACK: Final = "127.0.0.1"
WAITING: Final = 64  # connections that wait while the process starts
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
STEADY: Final = 60.0  # a process that ran this long resets the restart delay
# On a machine with many cores, each library would start threads and use memory beyond the limit.
ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
HOME: Final = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
# Parent packages are empty stubs: their imports would make this small process large.
BOOT: Final = """import sys, types
for name in ("argosy", "argosy.sandbox", "argosy.sandbox.simulators"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
from argosy.sandbox.simulators.model_server.server import main
main(int(sys.argv[2]))
"""


class Answerer:
    """One process and its port, for one model file or for all stubs."""

    def __init__(self, *folders: str, port: int = 0, hear: Callable[[bytes], None] | None = None) -> None:
        """Use `port` if it is free, because users know it already; otherwise any port."""
        self._hear = hear
        self._folders = [Path(each) for each in folders]
        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])
        self.plans: dict[str, Plan] = {}
        self.problem = ""  # why the process ended; empty: it runs or has not started
        self._resident: Resident | None = None
        self._is_renewed = False
        self._keeping = asyncio.create_task(self._keep(), name="answerer")

    async def serve(self, plan: Plan) -> None:
        self.plans[plan.host] = plan
        if self._resident is not None:
            await self._resident.tell(_line(plan))

    async def renew(self, plan: Plan) -> None:
        """Restart the process for this model only, at the same address; requests wait meanwhile."""
        self.plans = {plan.host: plan}
        self._folders = [Path(plan.folder)]
        before, self._resident = self._resident, None
        if before is not None:
            self._is_renewed = True
            await before.end()

    async def forget(self, host: str) -> None:
        self.plans.pop(host, None)
        if self._resident is not None:
            await self._resident.tell(json.dumps({"forget": host}).encode())

    async def end(self) -> None:
        self._keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeping
        self._socket.close()

    async def _keep(self) -> None:
        pause = FIRST_PAUSE
        try:
            while True:
                began = time.monotonic()
                self.problem = await self._live()
                if self._is_renewed:
                    self.problem, self._is_renewed = "", False
                    continue
                self._tell(f"model server process {self.problem}; restarting")
                pause = FIRST_PAUSE if time.monotonic() - began > STEADY else min(pause * 2, LONGEST_PAUSE)
                await asyncio.sleep(pause)
        finally:
            if self._resident is not None:
                await self._resident.end()

    async def _live(self) -> str:
        """Run one process until it ends; return why it ended."""
        try:
            resident = self._resident = await self._start()  # from here on, `serve` also sends to it
            for plan in list(self.plans.values()):
                await resident.tell(_line(plan))
        except (OSError, ArgosyError) as error:
            return f"could not be started: {error}"
        ended = await asyncio.shield(resident.ended)
        return _told(ended, _last_words(resident.said(), self.plans))

    async def _start(self) -> Resident:
        plain = () if self._folders else ("-S",)  # site-packages are only needed for model files
        # unbuffered: lines appear when they are printed
        flags = ("-I", "-B", "-u", *plain, "-X", "utf8")
        argv = (sys.executable, *flags, "-c", BOOT, HOME, str(self._socket.fileno()))
        readable = (*python_places(), *self._folders)
        around = Surroundings(env=ONE_THREAD if self._folders else {}, hear=self._hear)
        sockets = [self._socket]
        return await start(argv, folder=Path(HOME), readable=readable, sockets=sockets, limits=LIMITS, around=around)

    def _tell(self, text: str) -> None:
        hear = self._hear or (lambda _: None)
        for host in self.plans:
            hear(f"{host} {stamp(datetime.now(UTC))} {text}\n".encode())

    def is_answering(self) -> bool:
        return self._resident is not None and self._resident.is_running


def _listening(port: int) -> socket.socket:
    with contextlib.suppress(OSError):
        return socket.create_server((LOOPBACK, port), backlog=WAITING)
    return socket.create_server((LOOPBACK, 0), backlog=WAITING)


def _line(plan: Plan) -> bytes:
    return json.dumps({"host": plan.host, "name": plan.name, "source": plan.source, "folder": plan.folder}).encode()


def _last_words(said: str, hosts: Container[str]) -> str:
    """Return the last line of output, ignoring start messages, which say nothing about the end."""
    for line in reversed(said.splitlines()):
        host, _, told = line.partition(" ")
        text = told.partition(" ")[2] if host in hosts else line
        if text.strip() and not text.endswith(f"({BY})"):
            return text.strip()
    return ""


def _told(ended: Ended, last: str) -> str:
    if ended.refused:
        return f"could not be started: {ended.refused}"
    if ended.limit:
        return f"exceeded its {ended.limit} limit"
    return f"exited with code {ended.code}{f': {last[:300]}' if last else ''}"
