"""A process that answers for models, kept alive: with its socket, which stays when the process does not.

In: plans. Out: a port of this machine that answers. Never: runs a model here; leaves a process behind.
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

# The system counts all processes and threads of a user, those of other models and sandboxes too: hence so many.
LIMITS: Final = ProgramLimits(cpu=DAYS, memory=1 << 30, scratch=64 << 20, processes=1024)
LOOPBACK: Final = "127.0.0.1"
WAITING: Final = 64  # connections that wait while it starts
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 30.0
STEADY: Final = 60.0  # who lived so long has not failed at once
# Of a machine with many cores each would take threads and memory beyond what a model may have.
ONE_THREAD: Final = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT"), "1"
)
HOME: Final = os.path.dirname(os.path.dirname(os.path.abspath(argosy.__file__)))
# The packages above it are there in name only: what they import is not for a process that should be small.
BOOT: Final = """import sys, types
for name in ("argosy", "argosy.sandbox", "argosy.sandbox.simulators"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
from argosy.sandbox.simulators.model_server.server import main
main(int(sys.argv[2]))
"""


class Answerer:
    """One process and its port, for one model that is an artefact, or for all that are stubs."""

    def __init__(self, *folders: str, port: int = 0, hear: Callable[[bytes], None] | None = None) -> None:
        """`port` is the one that users know already; where others have it by now, it is any."""
        self._hear = hear
        self._folders = [Path(each) for each in folders]
        self._socket = _listening(port)
        self.port = int(self._socket.getsockname()[1])
        self.plans: dict[str, Plan] = {}
        self.problem = ""  # why it ended; empty: it runs, or nothing is known yet
        self._resident: Resident | None = None
        self._is_renewed = False
        self._keeping = asyncio.create_task(self._keep(), name="answerer")

    async def serve(self, plan: Plan) -> None:
        self.plans[plan.host] = plan
        if self._resident is not None:
            await self._resident.tell(_line(plan))

    async def renew(self, plan: Plan) -> None:
        """A new process, for this plan alone, at the same address: who asks meanwhile waits."""
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
                self._tell(f"the process that answers ended: {self.problem}; it is started again")
                pause = FIRST_PAUSE if time.monotonic() - began > STEADY else min(pause * 2, LONGEST_PAUSE)
                await asyncio.sleep(pause)
        finally:
            if self._resident is not None:
                await self._resident.end()

    async def _live(self) -> str:
        """The whole life of a process; why it ended."""
        try:
            resident = self._resident = await self._start()  # from here on `serve` tells it, too
            for plan in list(self.plans.values()):
                await resident.tell(_line(plan))
        except (OSError, ArgosyError) as error:
            return f"it could not be started: {error}"
        ended = await asyncio.shield(resident.ended)
        return _told(ended, _last_words(resident.said(), self.plans))

    async def _start(self) -> Resident:
        plain = () if self._folders else ("-S",)  # what is installed is for artefacts only
        # unbuffered: lines are there when they are printed
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
    """What it printed last; what only tells that it began tells nothing of its end."""
    for line in reversed(said.splitlines()):
        host, _, told = line.partition(" ")
        text = told.partition(" ")[2] if host in hosts else line
        if text.strip() and not text.endswith(f"({BY})"):
            return text.strip()
    return ""


def _told(ended: Ended, last: str) -> str:
    if ended.refused:
        return f"it could not be started: {ended.refused}"
    if ended.limit:
        return f"it used more {ended.limit} than it may"
    return f"it ended with code {ended.code}{f': {last[:300]}' if last else ''}"
