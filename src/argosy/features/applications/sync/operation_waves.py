"""Phases, waves and tasks of an operation, and the task that blocks it.

In: an Application. Out: OperationTimeline. Never: calls a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from argosy.features.applications.page_parts.addresses import of_resource
from argosy.features.applications.page_parts.keyed_values import Keyed
from argosy.gitops.application import Application
from argosy.gitops.application.operations import OperationState, Result
from argosy.gitops.application_client import summary
from argosy.gitops.status.rollback import is_rollback
from argosy.kube.names import ResourceKey

FAILED = ("SyncFailed", "Failed", "Error")
OVER = ("Succeeded", "Synced", "Pruned", "PruneSkipped")
NOT_BEGUN = "the operation was requested and has not started yet"
PHASES = ("PreSync", "Sync", "PostSync", "SyncFail")


@dataclass(frozen=True, slots=True)
class TaskRow(Keyed):
    key: ResourceKey
    url: str
    word: str  # Succeeded, Running, Failed, Waiting, Synced, Pruned …
    message: str = ""
    hook: str = ""

    @property
    def is_over(self) -> bool:
        return self.word in OVER

    @property
    def is_failed(self) -> bool:
        return self.word in FAILED


@dataclass(frozen=True, slots=True)
class Step:
    """One wave of one phase."""

    phase: str
    wave: int
    word: str  # Succeeded, Running, Failed, Waiting
    done: int
    total: int
    tasks: tuple[TaskRow, ...]


@dataclass(frozen=True, slots=True)
class Blocker:
    """The first task that failed, or that the operation waits for."""

    task: TaskRow
    phase: str
    wave: int
    is_failed: bool
    elapsed: float | None


@dataclass(frozen=True, slots=True)
class Timeline:
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
    steps: tuple[Step, ...]
    blocker: Blocker | None
    failed: tuple[TaskRow, ...]
    done: int
    total: int


def timeline(app: Application, now: datetime) -> Timeline | None:
    """Return None if the Application never had an operation."""
    state = app.state
    if app.operation is not None and (state is None or state.progress.is_over):
        state = OperationState(app.operation, message=NOT_BEGUN)  # the finished state belongs to the previous operation
    if state is None:
        return None
    steps = _steps(app, state)
    tasks = [task for step in steps for task in step.tasks]
    sync = state.request.sync
    return Timeline(
        phase=state.progress.value,
        message=state.message,
        started=state.started,
        finished=state.finished,
        seconds=_seconds(state, now),
        by="automatic" if state.request.is_automated else state.request.by,
        revision=state.revision or ", ".join(state.revisions),
        retries=state.retries,
        retry_limit=state.request.retry.limit,
        retry=summary.retrying(app).partition(";")[0],
        is_dry_run=sync.dry_run,
        is_rollback=is_rollback(state.request.wire),
        is_running=summary.is_busy(app),
        options=tuple(sync.options) + (("Prune",) if sync.prune else ()) + (("Force",) if sync.force else ()),
        steps=steps,
        blocker=_blocker(steps, _seconds(state, now)) if state.started and state.progress != "Succeeded" else None,
        failed=tuple(task for task in tasks if task.is_failed),
        done=sum(task.is_over for task in tasks),
        total=len(tasks),
    )


def _steps(app: Application, state: OperationState) -> tuple[Step, ...]:
    """Return the steps in execution order; objects without a result are Waiting."""
    waves = {row.key: row.wave for row in summary.rows(app)}
    found: dict[tuple[int, int], list[TaskRow]] = {}
    seen = set()
    for result in state.results:
        seen.add(result.key)
        place = (_place(result.phase.value), waves.get(result.key, 0))
        found.setdefault(place, []).append(
            _task(app, result, ended=state.progress.value if state.progress.is_over else "")
        )
    if not state.progress.is_over and not state.request.sync.resources:
        for row in summary.rows(app):
            if row.key not in seen:
                waiting = TaskRow(row.key, of_resource(app.namespace, app.name, row.key), "Waiting")
                found.setdefault((_place("Sync"), row.wave), []).append(waiting)
    return tuple(_step(PHASES[phase], wave, tasks) for (phase, wave), tasks in sorted(found.items()))


def _place(phase: str) -> int:
    return PHASES.index(phase) if phase in PHASES else 1


def _task(app: Application, result: Result, *, ended: str) -> TaskRow:
    progress = result.progress.value if result.progress else ""
    outcome = result.outcome.value if result.outcome else ""
    word = progress if result.hook or progress in ("Running", *FAILED) else outcome or progress
    if outcome == "SyncFailed":
        word = outcome
    elif ended and progress == "Running":  # argo: stays Running after the operation ended
        word = outcome or ended if not result.hook else ended
    url = of_resource(app.namespace, app.name, result.key)
    return TaskRow(result.key, url, word or "Waiting", result.message, result.hook)


def _step(phase: str, wave: int, tasks: list[TaskRow]) -> Step:
    done = sum(task.is_over for task in tasks)
    if any(task.is_failed for task in tasks):
        word = "Failed"
    elif done == len(tasks):
        word = "Succeeded"
    else:
        word = "Waiting" if all(task.word == "Waiting" for task in tasks) else "Running"
    ordered = sorted(tasks, key=lambda task: (not task.is_failed, task.is_over, task.key))
    return Step(phase, wave, word, done, len(tasks), tuple(ordered))


def _blocker(steps: tuple[Step, ...], elapsed: float | None) -> Blocker | None:
    for wanted in (FAILED, ("Running",), ("Waiting",)):
        for step in steps:
            for task in step.tasks:
                if task.word in wanted:
                    return Blocker(task, step.phase, step.wave, task.is_failed, elapsed)
    return None


def _seconds(state: OperationState, now: datetime) -> float | None:
    try:
        began = datetime.fromisoformat(state.started)
        ended = datetime.fromisoformat(state.finished) if state.finished else now
    except ValueError:
        return None
    return max((ended - began).total_seconds(), 0.0)
