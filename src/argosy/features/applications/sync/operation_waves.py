"""Phases, waves and tasks of an operation, and the task that blocks it.

In: an Application. Out: OperationTimeline. Never: calls a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from argosy.features.applications.page_parts.resource_key_template_attributes import KeyProperties
from argosy.features.applications.page_parts.url_paths import resource_path
from argosy.gitops.application import Application
from argosy.gitops.application.operations import OperationState, ResourceResult
from argosy.gitops.application_client import status_summary
from argosy.gitops.status.rollback_detection import is_rollback
from argosy.kube.resource_key import ResourceKey

FAILED_STATES = ("SyncFailed", "Failed", "Error")
FINISHED_STATES = ("Succeeded", "Synced", "Pruned", "PruneSkipped")
NOT_STARTED_MESSAGE = "the operation was requested and has not started yet"
PHASES = ("PreSync", "Sync", "PostSync", "SyncFail")


@dataclass(frozen=True, slots=True)
class TaskRow(KeyProperties):
    key: ResourceKey
    url: str
    word: str  # Succeeded, Running, Failed, Waiting, Synced, Pruned …
    message: str = ""
    hook: str = ""

    @property
    def is_over(self) -> bool:
        return self.word in FINISHED_STATES

    @property
    def is_failed(self) -> bool:
        return self.word in FAILED_STATES


@dataclass(frozen=True, slots=True)
class WaveStep:
    """One wave of one phase."""

    phase: str
    wave: int
    word: str  # Succeeded, Running, Failed, Waiting
    done: int
    total: int
    tasks: tuple[TaskRow, ...]


@dataclass(frozen=True, slots=True)
class BlockingTask:
    """The first task that failed, or that the operation waits for."""

    task: TaskRow
    phase: str
    wave: int
    is_failed: bool
    elapsed: float | None


@dataclass(frozen=True, slots=True)
class OperationTimeline:
    phase: str
    message: str
    started: str
    finished: str
    seconds: float | None
    by: str
    revision: str
    retries: int
    retry_limit: int
    retry: str
    is_dry_run: bool
    is_rollback: bool
    is_running: bool
    options: tuple[str, ...]
    steps: tuple[WaveStep, ...]
    blocker: BlockingTask | None
    failed: tuple[TaskRow, ...]
    done: int
    total: int


def build_operation_timeline(app: Application, now: datetime) -> OperationTimeline | None:
    """Return None if the Application never had an operation."""
    state = app.state
    if app.operation is not None and (state is None or state.phase.is_over):
        # The finished state belongs to the previous operation.
        state = OperationState(app.operation, message=NOT_STARTED_MESSAGE)
    if state is None:
        return None
    steps = _build_steps(app, state)
    tasks = [task for step in steps for task in step.tasks]
    sync = state.request.sync
    return OperationTimeline(
        phase=state.phase.value,
        message=state.message,
        started=state.started,
        finished=state.finished,
        seconds=_elapsed_seconds(state, now),
        by="automatic" if state.request.is_automated else state.request.username,
        revision=state.revision or ", ".join(state.revisions),
        retries=state.retries,
        retry_limit=state.request.retry.limit,
        retry=status_summary.describe_retry(app).partition(";")[0],
        is_dry_run=sync.dry_run,
        is_rollback=is_rollback(state.request.wire),
        is_running=status_summary.is_busy(app),
        options=tuple(sync.options) + (("Prune",) if sync.prune else ()) + (("Force",) if sync.force else ()),
        steps=steps,
        blocker=_find_blocking_task(steps, _elapsed_seconds(state, now))
        if state.started and state.phase != "Succeeded"
        else None,
        failed=tuple(task for task in tasks if task.is_failed),
        done=sum(task.is_over for task in tasks),
        total=len(tasks),
    )


def _build_steps(app: Application, state: OperationState) -> tuple[WaveStep, ...]:
    """Return the steps in execution order; objects without a result are Waiting."""
    waves = {row.key: row.wave for row in status_summary.list_rows(app)}
    tasks_by_step: dict[tuple[int, int], list[TaskRow]] = {}
    keys_with_result = set()
    for result in state.results:
        keys_with_result.add(result.key)
        step_key = (_phase_index(result.phase.value), waves.get(result.key, 0))
        tasks_by_step.setdefault(step_key, []).append(
            _build_task_row(app, result, final_phase=state.phase.value if state.phase.is_over else "")
        )
    if not state.phase.is_over and not state.request.sync.resources:
        for row in status_summary.list_rows(app):
            if row.key not in keys_with_result:
                waiting = TaskRow(row.key, resource_path(app.namespace, app.name, row.key), "Waiting")
                tasks_by_step.setdefault((_phase_index("Sync"), row.wave), []).append(waiting)
    return tuple(_build_step(PHASES[phase], wave, tasks) for (phase, wave), tasks in sorted(tasks_by_step.items()))


def _phase_index(phase: str) -> int:
    return PHASES.index(phase) if phase in PHASES else 1


def _build_task_row(app: Application, result: ResourceResult, *, final_phase: str) -> TaskRow:
    progress = result.hook_phase.value if result.hook_phase else ""
    outcome = result.result_code.value if result.result_code else ""
    word = progress if result.hook or progress in ("Running", *FAILED_STATES) else outcome or progress
    if outcome == "SyncFailed":
        word = outcome
    elif final_phase and progress == "Running":  # argo: stays Running after the operation ended
        word = outcome or final_phase if not result.hook else final_phase
    url = resource_path(app.namespace, app.name, result.key)
    return TaskRow(result.key, url, word or "Waiting", result.message, result.hook)


def _build_step(phase: str, wave: int, tasks: list[TaskRow]) -> WaveStep:
    done = sum(task.is_over for task in tasks)
    if any(task.is_failed for task in tasks):
        word = "Failed"
    elif done == len(tasks):
        word = "Succeeded"
    else:
        word = "Waiting" if all(task.word == "Waiting" for task in tasks) else "Running"
    ordered = sorted(tasks, key=lambda task: (not task.is_failed, task.is_over, task.key))
    return WaveStep(phase, wave, word, done, len(tasks), tuple(ordered))


def _find_blocking_task(steps: tuple[WaveStep, ...], elapsed: float | None) -> BlockingTask | None:
    for states in (FAILED_STATES, ("Running",), ("Waiting",)):
        for step in steps:
            for task in step.tasks:
                if task.word in states:
                    return BlockingTask(task, step.phase, step.wave, task.is_failed, elapsed)
    return None


def _elapsed_seconds(state: OperationState, now: datetime) -> float | None:
    try:
        began = datetime.fromisoformat(state.started)
        ended = datetime.fromisoformat(state.finished) if state.finished else now
    except ValueError:
        return None
    return max((ended - began).total_seconds(), 0.0)
