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
from argosy.isolation.long_running_program import LongRunningProgram, ProgramExit
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp, remaining_delay
from argosy.sandbox.simulators.pod_processes.command_and_environment import ContainerConfigError
from argosy.sandbox.simulators.pod_processes.container_log_file import ContainerLogFile
from argosy.sandbox.simulators.timestamps_and_durations import format_duration

INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 10.0, 300.0
BACK_OFF_REASON: Final = "CrashLoopBackOff"
CONFIG_RETRY_SECONDS: Final = 1.0
START_ERROR_EXIT_CODE, KILLED_EXIT_CODE = 128, 137
PROCESS_NOTE: Final = "run by argosy as a local process"
# k8s: maximum bytes of a termination message, and of one taken from the log
MAX_TERMINATION_MESSAGE_BYTES, MAX_LOG_MESSAGE_BYTES = 4096, 2048
StartContainer = Callable[[Manifest, Callable[[bytes], None]], Awaitable[LongRunningProgram]]


class ContainerProcess:
    def __init__(self, container: Manifest, logs: Path, previous_status: Manifest) -> None:
        """`previous_status` is the container status from before this process started, if any."""
        self.container, self._logs = container, logs
        self.state: dict[str, Any] = dict(previous_status.get("state") or {})
        self.restart_count = int(previous_status.get("restartCount") or 0) + self._waits_for_restart
        self.last_state: dict[str, Any] = dict(previous_status.get("lastState") or {})
        self._process: LongRunningProgram | None = None
        self._log_file: ContainerLogFile | None = None
        self._started_at = ""
        self._restart_delay: tuple[datetime, float] | None = None  # start of the restart delay, and its seconds
        self._lost_run = self.state.get("running")
        self.termination_message_file: Path | None = None  # the file of the termination message

    @property
    def name(self) -> str:
        return str(self.container["name"])

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def _waits_for_restart(self) -> bool:
        return bool((self.state.get("waiting") or {}).get("reason") == BACK_OFF_REASON)

    @property
    def exit_code(self) -> int | None:
        """Exit code, or None if the container has not ended."""
        terminated = self.state.get("terminated")
        return int(terminated["exitCode"]) if terminated else None

    def find_log(self, *, previous: bool = False) -> Path:
        """Return the log file; a container that waits for a restart shows the log of its previous run."""
        file = self._logs / self.name / f"{self.restart_count - previous}.log"
        is_waiting = not previous and self.restart_count and "waiting" in self.state
        return self._logs / self.name / f"{self.restart_count - 1}.log" if is_waiting else file

    async def advance(self, start_container: StartContainer, restart_policy: str, now: datetime) -> float | None:
        """Start or restart the container if due; return the seconds until the next check, None if only an event changes
        it."""
        if self._lost_run:
            self._set_terminated(
                KILLED_EXIT_CODE, "the sandbox was stopped while it ran", str(self._lost_run.get("startedAt")), now
            )
            self._lost_run = None
        if self._process is not None and self._process.exit_task.done():
            self._record_exit(self._process.exit_task.result(), now)
        if self.exit_code is not None:
            if not (restart_policy == "Always" or (restart_policy == "OnFailure" and self.exit_code)):
                return None
            self._plan_restart(now)
        if self._restart_delay is not None and (wait := remaining_delay(*self._restart_delay, now)) > 0:
            return wait
        if not self.is_running:
            return await self._start(start_container, now)
        return None

    async def _start(self, start_container: StartContainer, now: datetime) -> float | None:
        self._restart_delay = None
        self.state = {}
        log_file = ContainerLogFile(self.find_log())
        try:
            self._process = await start_container(self.container, log_file.write)
        except ContainerConfigError as error:
            log_file.close()
            self.state = {"waiting": {"reason": "CreateContainerConfigError", "message": str(error)}}
            self._restart_delay = (now, CONFIG_RETRY_SECONDS)
            return CONFIG_RETRY_SECONDS
        except RefusedError as error:
            log_file.close()
            self._set_terminated(START_ERROR_EXIT_CODE, str(error), format_timestamp(now), now, reason="StartError")
            return 0.0
        self._log_file, self._started_at = log_file, format_timestamp(now)
        self.state = {"running": {"startedAt": self._started_at}}
        return None

    def _plan_restart(self, now: datetime) -> None:
        """k8s: the first restart is immediate; later ones wait twice as long each time."""
        self.last_state = {"terminated": self.state["terminated"]}
        self.restart_count += 1
        delay = (
            0.0
            if self.restart_count == 1
            else min(INITIAL_BACKOFF_SECONDS * 2 ** min(self.restart_count - 2, 10), MAX_BACKOFF_SECONDS)
        )
        self._restart_delay = (now, delay)
        message = f"back-off {format_duration(delay)} restarting failed container={self.name}"
        self.state = {"waiting": {"reason": BACK_OFF_REASON, "message": message}}

    def _record_exit(self, ended: ProgramExit, now: datetime) -> None:
        if self._log_file is not None:
            self._log_file.close()
        self._process = self._log_file = None
        if ended.refused:
            self._set_terminated(START_ERROR_EXIT_CODE, ended.refused, self._started_at, now, reason="StartError")
        elif ended.limit:
            reason = "OOMKilled" if ended.limit == "memory" else "Error"
            message = f"exceeded its {ended.limit} limit"
            self._set_terminated(KILLED_EXIT_CODE, message, self._started_at, now, reason=reason)
        else:
            exit_code = ended.code if ended.code >= 0 else 128 - ended.code
            self._set_terminated(
                exit_code, self._read_termination_message(exit_code) or PROCESS_NOTE, self._started_at, now
            )

    def _read_termination_message(self, exit_code: int) -> str:
        message = _read_start_of_file(self.termination_message_file)
        if not message and exit_code and self.container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            with contextlib.suppress(OSError):
                return self.find_log().read_bytes()[-MAX_LOG_MESSAGE_BYTES:].decode(errors="replace")
        return message

    def _set_terminated(self, exit_code: int, message: str, started_at: str, now: datetime, reason: str = "") -> None:
        self.state = {
            "terminated": {
                "exitCode": exit_code,
                "reason": reason or ("Error" if exit_code else "Completed"),
                "message": message,
                "startedAt": started_at,
                "finishedAt": format_timestamp(now),
            }
        }

    def build_status(self, *, is_initializing: bool = False) -> dict[str, Any]:
        state = self.state or {"waiting": {"reason": "PodInitializing" if is_initializing else "ContainerCreating"}}
        image = str(self.container.get("image") or "")
        return {
            "name": self.name,
            "image": image,
            "imageID": f"process://{image}" if "waiting" not in state else "",
            "containerID": f"process://{self.name}/{self.restart_count}" if "waiting" not in state else None,
            "ready": "running" in state,
            "started": "running" in state,
            # k8s: the restart count rises when the container restarts
            "restartCount": self.restart_count - self._waits_for_restart,
            "state": state,
            "lastState": self.last_state,
        }

    def ask_to_end(self) -> None:
        if self._process is not None:
            self._process.terminate()

    async def end(self, now: datetime) -> None:
        if self._process is not None:
            await self._process.kill()
            self._record_exit(self._process.exit_task.result(), now)

    @property
    def has_process(self) -> bool:
        return self._process is not None and self._process.is_running


def _read_start_of_file(file: Path | None) -> str:
    """Read the start of a file written by the container, without following links or blocking on a pipe."""
    if file is None:
        return ""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
            is_file = stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
            return stream.read(MAX_TERMINATION_MESSAGE_BYTES).decode(errors="replace") if is_file else ""
    except OSError:
        return ""
