"""Simulates the life of a Pod's containers: start, run, become ready, exit, restart.

In: the previous container status, the simulation settings and the time. Out: the current state and the time until the
next change.
Never: runs a program; reads a clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import MAX_CLOCK_SKEW, remaining_delay
from argosy.sandbox.simulators.known_commands import CommandOutcome, predict_outcome
from argosy.sandbox.simulators.missing_images import has_invalid_image_name, has_missing_image
from argosy.sandbox.simulators.owner_references_and_marks import append_simulated_note
from argosy.sandbox.simulators.simulation_annotations import FAULTS_WITH_EXIT, InjectedFault, SimulationSettings
from argosy.sandbox.simulators.timestamps_and_durations import ExactTimestamps, format_duration, seconds_until_deadline

INITIAL_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 10.0, 300.0
BACKOFF_RESET_SECONDS: Final = 2 * MAX_BACKOFF_SECONDS  # k8s: a container that ran longer starts again without a wait
IMAGE_PULL_SECONDS: Final = 1.0
INVALID_IMAGE_NAME_REASON: Final = "InvalidImageName"
IMAGE_PULL_REASONS: Final = ("ErrImagePull", "ImagePullBackOff", INVALID_IMAGE_NAME_REASON)
CONFIG_ERROR_REASON: Final = "CreateContainerConfigError"
NOT_CREATED_REASONS: Final = (*IMAGE_PULL_REASONS, "ContainerCreating", "PodInitializing", CONFIG_ERROR_REASON)
CONTAINER_CREATING_STATE: Final = {"waiting": {"reason": "ContainerCreating"}}


@dataclass(frozen=True)
class ContainersState:
    """State shared by all containers of a Pod at one moment."""

    phase: str
    # as in a container status; `{image}` and `{name}` in messages are filled in per container
    state: Manifest
    last_state: Manifest = field(default_factory=dict)
    restart_count: int = 0
    is_ready: bool = False
    seconds_until_change: float | None = None  # seconds until the state changes


@dataclass(frozen=True)
class PodSimulation:
    """Inputs that decide the state of one Pod's containers."""

    pod: Manifest
    settings: SimulationSettings
    now: datetime
    timestamps: ExactTimestamps
    earlier_failures: int = 0  # earlier Pods of the same owner that failed

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    @property
    def restart_policy(self) -> str:
        return str(self.pod["spec"].get("restartPolicy") or "Always")

    @cached_property
    def command_outcome(self) -> CommandOutcome | None:
        return predict_outcome(self.pod)

    @property
    def has_unpullable_image(self) -> bool:
        if self.settings.fault is InjectedFault.IMAGE_PULL and self.is_failing(0):
            return True
        return has_missing_image(self.pod) or has_missing_image(self.pod, "initContainers")

    def is_failing(self, restart_count: int) -> bool:
        """True if the injected fault still applies after this many restarts."""
        max_failures = self.settings.fail_times
        return self.settings.fault is not None and (
            max_failures is None or self.earlier_failures + restart_count < max_failures
        )


@dataclass(frozen=True)
class PlannedExit:
    exit_code: int
    run_seconds: float
    reason: str
    is_fault: bool = False  # caused by an annotation, and not by the command


def simulate_containers(simulation: PodSimulation) -> ContainersState:
    """Compute the current state of the Pod's containers from their last status."""
    status = simulation.pod.get("status") or {}
    previous: Manifest = next(iter(status.get("containerStatuses") or ()), {})
    state = previous.get("state") or {}
    waiting_reason = (state.get("waiting") or {}).get("reason") or ""
    if not state or waiting_reason in NOT_CREATED_REASONS:
        if simulation.settings.fault is InjectedFault.STORAGE and simulation.is_failing(0):
            return ContainersState("Pending", CONTAINER_CREATING_STATE)
        if simulation.has_unpullable_image:
            return _simulate_image_pull_error(simulation, waiting_reason)
        return _replay_exits_and_restarts(simulation, simulation.now, 0, {})
    restart_count, last_state = int(previous.get("restartCount") or 0), previous.get("lastState") or {}
    if "running" in state:
        return _replay_exits_and_restarts(
            simulation,
            simulation.timestamps.parse_exact(simulation.uid, state["running"]["startedAt"]),
            restart_count,
            last_state,
        )
    if waiting_reason:  # CrashLoopBackOff; removing the fault ends the wait at once
        seconds_until_restart = _compute_restart_delay(simulation, last_state["terminated"], restart_count + 1)
        if _will_exit_again(simulation, last_state["terminated"], restart_count + 1) and seconds_until_restart > 0:
            return ContainersState(
                "Running", state, last_state, restart_count, seconds_until_change=seconds_until_restart
            )
        return _replay_exits_and_restarts(simulation, simulation.now, restart_count + 1, last_state)
    return ContainersState(str(status.get("phase") or "Succeeded"), state, last_state, restart_count)


def _simulate_image_pull_error(simulation: PodSimulation, waiting_reason: str) -> ContainersState:
    """k8s: ErrImagePull first, then ImagePullBackOff; the simulation stays in ImagePullBackOff. An invalid name is not
    pulled at all.
    """
    if has_invalid_image_name(simulation.pod):
        cause = 'couldn\'t parse image name "{image}": invalid reference format'
        message = append_simulated_note(f'Failed to apply default image tag "{{image}}": {cause}')
        return ContainersState("Pending", {"waiting": {"reason": INVALID_IMAGE_NAME_REASON, "message": message}})
    started_at = (simulation.pod.get("status") or {}).get("startTime")
    since = simulation.timestamps.parse_exact(simulation.uid, started_at) if started_at else simulation.now
    wait = remaining_delay(since, IMAGE_PULL_SECONDS, simulation.now)
    cause = 'failed to resolve reference "{image}": {image}: not found'
    pull_error = append_simulated_note(
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{{image}}": {cause}'
    )
    if wait > 0 and waiting_reason != "ImagePullBackOff":
        return ContainersState(
            "Pending", {"waiting": {"reason": "ErrImagePull", "message": pull_error}}, seconds_until_change=wait
        )
    message = 'Back-off pulling image "{image}": ErrImagePull: ' + pull_error
    return ContainersState("Pending", {"waiting": {"reason": "ImagePullBackOff", "message": message}})


def _replay_exits_and_restarts(
    simulation: PodSimulation, started_at: datetime, restart_count: int, last_state: Manifest
) -> ContainersState:
    """Replay exits and restarts since `started_at` and return the state at the current time."""
    if started_at > simulation.now + MAX_CLOCK_SKEW:  # the clock was set back: count from now
        started_at = simulation.now
    while True:
        planned_exit = _plan_exit(simulation, restart_count)
        if planned_exit is None:
            break
        wait = seconds_until_deadline(started_at, planned_exit.run_seconds, simulation.now)
        if wait > 0:
            return _build_running_state(simulation, started_at, restart_count, last_state, seconds_until_exit=wait)
        finished_at = started_at + timedelta(seconds=planned_exit.run_seconds)
        terminated = _build_terminated_state(simulation, started_at, finished_at, planned_exit)
        if not _is_restarted(simulation, planned_exit.exit_code):
            return ContainersState(
                "Failed" if planned_exit.exit_code else "Succeeded",
                {"terminated": terminated},
                last_state,
                restart_count,
            )
        restart_count, last_state = restart_count + 1, {"terminated": terminated}
        if restart_count > 1 and planned_exit.run_seconds <= BACKOFF_RESET_SECONDS:  # k8s: others restart at once
            seconds_until_restart = _compute_restart_delay(simulation, terminated, restart_count)
            if seconds_until_restart > 0:  # k8s: the restart count rises when the container restarts
                waiting = {
                    "waiting": {
                        "reason": "CrashLoopBackOff",
                        "message": _build_back_off_message(simulation, restart_count),
                    }
                }
                return ContainersState(
                    "Running", waiting, last_state, restart_count - 1, seconds_until_change=seconds_until_restart
                )
        started_at = max(finished_at, simulation.now) if restart_count > 1 else finished_at
    return _build_running_state(simulation, started_at, restart_count, last_state)


def _build_back_off_message(simulation: PodSimulation, restart_count: int) -> str:
    metadata = simulation.pod["metadata"]
    pod_id = f"{metadata['name']}_{metadata['namespace']}({simulation.uid})"
    return append_simulated_note(
        f"back-off {format_duration(_compute_backoff_seconds(restart_count))} restarting failed "
        f"container={{name}} pod={pod_id}"
    )


def _plan_exit(simulation: PodSimulation, restart_count: int) -> PlannedExit | None:
    """Return how the containers exit, or None if they do not."""
    settings, outcome = simulation.settings, simulation.command_outcome
    if settings.fault in FAULTS_WITH_EXIT and simulation.is_failing(restart_count):
        if settings.fault is InjectedFault.OOM_KILLED:
            return PlannedExit(137, settings.run_for, "OOMKilled", is_fault=True)
        return PlannedExit(1, settings.run_for, "Error", is_fault=True)
    if settings.fault is InjectedFault.EVICTED:
        return None
    if outcome is not None:
        run_seconds = settings.run_for or outcome.run_seconds
        reason = "Error" if outcome.exit_code else "Completed"
        return None if math.isinf(run_seconds) else PlannedExit(outcome.exit_code, run_seconds, reason)
    return None if simulation.restart_policy == "Always" else PlannedExit(0, settings.run_for, "Completed")


def _is_restarted(simulation: PodSimulation, exit_code: int) -> bool:
    policy = simulation.restart_policy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _will_exit_again(simulation: PodSimulation, terminated: Manifest, restart_count: int) -> bool:
    """True if a restarted container exits for the same cause; otherwise a back-off ends at once."""
    planned_exit = _plan_exit(simulation, restart_count)
    return simulation.is_failing(restart_count) or (
        planned_exit is not None
        and planned_exit.exit_code == terminated.get("exitCode")
        and _is_restarted(simulation, planned_exit.exit_code)
    )


def _build_running_state(
    simulation: PodSimulation,
    started_at: datetime,
    restart_count: int,
    last_state: Manifest,
    seconds_until_exit: float | None = None,
) -> ContainersState:
    state = {"running": {"startedAt": simulation.timestamps.format_and_remember(simulation.uid, started_at)}}
    if simulation.settings.fault is InjectedFault.NOT_READY and simulation.is_failing(restart_count):
        return ContainersState(
            "Running", state, last_state, restart_count, is_ready=False, seconds_until_change=seconds_until_exit
        )
    seconds_until_ready = seconds_until_deadline(started_at, simulation.settings.ready_after, simulation.now)
    waits = [seconds for seconds in (seconds_until_exit, seconds_until_ready) if seconds is not None and seconds > 0]
    return ContainersState(
        "Running",
        state,
        last_state,
        restart_count,
        is_ready=seconds_until_ready <= 0,
        seconds_until_change=min(waits, default=None),
    )


def _build_terminated_state(
    simulation: PodSimulation, started_at: datetime, finished_at: datetime, planned_exit: PlannedExit
) -> dict[str, Any]:
    message = append_simulated_note(f"container {{name}} failed with exit code {planned_exit.exit_code}")
    return {
        "exitCode": planned_exit.exit_code,
        "reason": planned_exit.reason,
        # k8s: the message is what a program wrote to its termination log, so a known command has none
        **({"message": message} if planned_exit.is_fault else {}),
        "startedAt": simulation.timestamps.format_and_remember(simulation.uid, started_at),
        "finishedAt": simulation.timestamps.format_and_remember(simulation.uid, finished_at),
    }


def _compute_restart_delay(simulation: PodSimulation, terminated: Manifest, restart_count: int) -> float:
    return remaining_delay(
        simulation.timestamps.parse_exact(simulation.uid, terminated["finishedAt"]),
        _compute_backoff_seconds(restart_count),
        simulation.now,
    )


def _compute_backoff_seconds(restart_count: int) -> float:
    return float(min(INITIAL_BACKOFF_SECONDS * 2 ** min(max(restart_count - 2, 0), 10), MAX_BACKOFF_SECONDS))
