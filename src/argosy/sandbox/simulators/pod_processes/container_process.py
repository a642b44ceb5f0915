"""Runs one container as a process: starts, watches and restarts it.

In: a function that starts it, the restart policy, the time. Out: its state, as in a container status.
Never: runs it twice at the same time.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from argosy.isolation.errors import RefusedError
from argosy.isolation.long_running import Ended, Resident
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators.pod_processes.container_log import Journal
from argosy.sandbox.simulators.pod_processes.settings import NotYet
from argosy.sandbox.simulators.timestamps import span, stamp

FIRST_BACKOFF, MOST_BACKOFF = 10.0, 300.0
BACK_OFF: Final = "CrashLoopBackOff"
RETRY: Final = 1.0
CANNOT_START, KILLED = 128, 137
BY: Final = "run by argosy as a local process"
# k8s: maximum bytes of a termination message, and of one taken from the log
MOST_WORDS, MOST_LOG = 4096, 2048
Start = Callable[[Manifest, Callable[[bytes], None]], Awaitable[Resident]]


class Life:
    def __init__(self, container: Manifest, logs: Path, known: Manifest) -> None:
        """`previous_status` is the container status from before this process started, if any."""
        self.container, self._logs = container, logs
        self.state: dict[str, Any] = dict(known.get("state") or {})
        self.restarts = int(known.get("restartCount") or 0) + self._waits_for_restart
        self.last: dict[str, Any] = dict(known.get("lastState") or {})
        self._resident: Resident | None = None
        self._journal: Journal | None = None
        self._began = ""
        self._pause: tuple[datetime, float] | None = None  # start of the restart delay, and its seconds
        self._lost = self.state.get("running")
        self.words: Path | None = None  # the file of the termination message

    @property
    def name(self) -> str:
        return str(self.container["name"])

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def _waits_for_restart(self) -> bool:
        return bool((self.state.get("waiting") or {}).get("reason") == BACK_OFF)

    @property
    def code(self) -> int | None:
        """Exit code, or None if the container has not ended."""
        found = self.state.get("terminated")
        return int(found["exitCode"]) if found else None

    def log(self, *, previous: bool = False) -> Path:
        """Return the log file; a container that waits for a restart shows the log of its previous run."""
        file = self._logs / self.name / f"{self.restarts - previous}.log"
        waits = not previous and self.restarts and "waiting" in self.state
        return self._logs / self.name / f"{self.restarts - 1}.log" if waits else file

    async def step(self, start: Start, policy: str, now: datetime) -> float | None:
        """Start or restart the container if due; return the seconds until the next check, None if only an event changes
        it."""
        if self._lost:
            self._end(KILLED, "the sandbox was stopped while it ran", str(self._lost.get("startedAt")), now)
            self._lost = None
        if self._resident is not None and self._resident.ended.done():
            self._hear_end(self._resident.ended.result(), now)
        if self.code is not None:
            if not (policy == "Always" or (policy == "OnFailure" and self.code)):
                return None
            self._plan_restart(now)
        if self._pause is not None and (wait := remaining_delay(*self._pause, now)) > 0:
            return wait
        if not self.is_running:
            return await self._start(start, now)
        return None

    async def _start(self, start: Start, now: datetime) -> float | None:
        self._pause = None
        self.state = {}
        journal = Journal(self.log())
        try:
            self._resident = await start(self.container, journal.write)
        except NotYet as error:
            journal.close()
            self.state = {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
            self._pause = (now, RETRY)
            return RETRY
        except RefusedError as error:
            journal.close()
            self._end(CANNOT_START, str(error), stamp(now), now, reason="StartError")
            return 0.0
        self._journal, self._began = journal, stamp(now)
        self.state = {"running": {"startedAt": self._began}}
        return None

    def _plan_restart(self, now: datetime) -> None:
        """k8s: the first restart is immediate; later ones wait twice as long each time."""
        self.last = {"terminated": self.state["terminated"]}
        self.restarts += 1
        pause = 0.0 if self.restarts == 1 else min(FIRST_BACKOFF * 2 ** min(self.restarts - 2, 10), MOST_BACKOFF)
        self._pause = (now, pause)
        message = f"back-off {span(pause)} restarting failed container={self.name}"
        self.state = {"waiting": {"reason": BACK_OFF, "message": message}}

    def _hear_end(self, ended: Ended, now: datetime) -> None:
        if self._journal is not None:
            self._journal.close()
        self._resident = self._journal = None
        if ended.refused:
            self._end(CANNOT_START, ended.refused, self._began, now, reason="StartError")
        elif ended.limit:
            reason = "OOMKilled" if ended.limit == "memory" else "Error"
            message = f"exceeded its {ended.limit} limit"
            self._end(KILLED, message, self._began, now, reason=reason)
        else:
            code = ended.code if ended.code >= 0 else 128 - ended.code
            self._end(code, self._last_words(code) or BY, self._began, now)

    def _last_words(self, code: int) -> str:
        said = _beginning(self.words)
        if not said and code and self.container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            with contextlib.suppress(OSError):
                return self.log().read_bytes()[-MOST_LOG:].decode(errors="replace")
        return said

    def _end(self, code: int, message: str, began: str, now: datetime, reason: str = "") -> None:
        self.state = {
            "terminated": {
                "exitCode": code,
                "reason": reason or ("Error" if code else "Completed"),
                "message": message,
                "startedAt": began,
                "finishedAt": stamp(now),
            }
        }

    def status(self, *, waits: bool = False) -> dict[str, Any]:
        state = self.state or {"waiting": {"reason": "PodInitializing" if waits else "ContainerCreating"}}
        image = str(self.container.get("image") or "")
        return {
            "name": self.name,
            "image": image,
            "imageID": f"process://{image}" if "waiting" not in state else "",
            "containerID": f"process://{self.name}/{self.restarts}" if "waiting" not in state else None,
            "ready": "running" in state,
            "started": "running" in state,
            # k8s: the restart count rises when the container restarts
            "restartCount": self.restarts - self._waits_for_restart,
            "state": state,
            "lastState": self.last,
        }

    def ask_to_end(self) -> None:
        if self._resident is not None:
            self._resident.ask_to_end()

    async def end(self, now: datetime) -> None:
        if self._resident is not None:
            await self._resident.end()
            self._hear_end(self._resident.ended.result(), now)

    @property
    def has_process(self) -> bool:
        return self._resident is not None and self._resident.is_running


def _beginning(file: Path | None) -> str:
    """Read the start of a file written by the container, without following links or blocking on a pipe."""
    if file is None:
        return ""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            is_file = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            return opened.read(MOST_WORDS).decode(errors="replace") if is_file else ""
    except OSError:
        return ""
