"""The state of each task of a sync, and Argo CD's messages for them. Pure.

In: tasks, earlier results, assessments. Out: task states and messages. Never: touches a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from argosy import annotations as names
from argosy.gitops.application import OperationState, Outcome, Phase, Progress, Result
from argosy.gitops.application.hooks import DeletePolicy, annotation_text, delete_policies
from argosy.gitops.application.step_results import Assessment, Health, Task
from argosy.gitops.sync.container_images import images_of
from argosy.gitops.sync.notebook_gates import block_wave
from argosy.gitops.sync.wave_gates import Gate, gate_of
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest

DELETION = "deletion of"
HELD_BACK = "not applied: "  # prefix of the result of an object whose wave a notebook blocks

# argo: the phase of a task that follows from its result code.
PROGRESS_OF = {
    Outcome.SYNCED: Progress.RUNNING,
    Outcome.SYNC_FAILED: Progress.FAILED,
    Outcome.PRUNED: Progress.SUCCEEDED,
    Outcome.PRUNE_SKIPPED: Progress.SUCCEEDED,
}


@dataclass(slots=True, eq=False)
class Turn:
    """A task and its result so far."""

    task: Task
    live: Manifest | None
    outcome: Outcome | None = None
    progress: Progress | None = None
    message: str = ""
    is_told: bool = True  # the result is in the written state, so it survives a crash
    is_fresh: bool = False  # `live` was read in this call
    gate: Gate = field(default_factory=Gate)

    @property
    def key(self) -> ResourceKey:
        return self.task.key

    @property
    def step(self) -> tuple[Phase, int]:
        return self.task.phase, self.task.wave

    @property
    def is_hook(self) -> bool:
        return self.task.is_hook

    @property
    def is_pending(self) -> bool:
        return self.progress is None

    @property
    def is_running(self) -> bool:
        return self.progress is Progress.RUNNING

    @property
    def is_over(self) -> bool:
        return self.progress is not None and self.progress.is_over

    @property
    def has_failed(self) -> bool:
        return self.is_over and self.progress is not Progress.SUCCEEDED

    @property
    def is_ours(self) -> bool:
        """True if the live hook was created by this task of this operation."""
        mark = annotation_text(self.task.desired or {}, names.OPERATION)
        return mark is not None and self.live is not None and annotation_text(self.live, names.OPERATION) == mark

    def has_policy(self, policy: DeletePolicy) -> bool:
        return policy in delete_policies(self.task.desired or self.live or {})


class Board:
    """The tasks of an operation in order, and their results."""

    def __init__(self, state: OperationState, tasks: Sequence[Task]) -> None:
        known = {(result.key, result.phase): result for result in state.results}
        self._results = dict(known)
        self.turns = [_turn(task, known.get((task.key, task.phase))) for task in tasks]

    @property
    def is_begun(self) -> bool:
        return bool(self._results)

    @property
    def has_many_steps(self) -> bool:
        """argo: the first and the last task are compared, including SyncFail hooks."""
        return bool(self.turns) and self.turns[0].step != self.turns[-1].step

    @property
    def ordinary(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.task.phase is not Phase.SYNC_FAIL]

    @property
    def of_failure(self) -> list[Turn]:
        return [turn for turn in self.turns if turn.task.phase is Phase.SYNC_FAIL]

    def record(self, turn: Turn, outcome: Outcome | None, progress: Progress | None, message: str = "") -> None:
        """argo: the last non-empty message is kept."""
        if (outcome, progress) != (turn.outcome, turn.progress):
            turn.is_told = False
        turn.outcome, turn.progress, turn.message = outcome, progress, message or turn.message
        about = turn.task.desired or turn.live or {}
        self._results[turn.key, turn.task.phase] = Result(
            key=turn.key,
            version=split_api_version(str(about.get("apiVersion") or ""))[1],
            phase=turn.task.phase,
            outcome=outcome,
            progress=progress,
            message=turn.message,
            hook=turn.task.phase.value if turn.is_hook else "",
            images=images_of(about),
        )

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(self._results.values())

    def is_awaited(self, turn: Turn) -> bool:
        """True if the operation waits while this task runs."""
        if turn.gate.is_free:
            return False
        return turn.is_running and (turn.is_hook or self.has_many_steps or turn.gate.blocks)

    def failures(self) -> list[Turn]:
        """Return failed tasks, without SyncFail hooks. Tasks whose health is only reported fail only by their apply."""
        return [
            turn
            for turn in self.ordinary
            if turn.has_failed and not (turn.gate.is_free and turn.outcome is not Outcome.SYNC_FAILED)
        ]


def _turn(task: Task, result: Result | None) -> Turn:
    turn = Turn(task, task.live, gate=gate_of(task.desired or {}))
    if result is not None:
        turn.outcome, turn.progress, turn.message = result.outcome, result.progress, result.message
    return turn


def verdict(assessment: Assessment | None, *, is_hook: bool) -> tuple[Progress, str] | None:
    """Return the new phase and message of a running task; None if it has to wait."""
    return _of_hook(assessment) if is_hook else _of_resource(assessment)


def _of_hook(assessment: Assessment | None) -> tuple[Progress, str]:
    if assessment is None:
        return Progress.SUCCEEDED, ""
    if assessment.fault:
        return Progress.ERROR, f"failed to get resource health: {assessment.fault}"
    if assessment.health in (Health.UNKNOWN, Health.DEGRADED):
        return Progress.FAILED, assessment.message
    if assessment.health in (Health.PROGRESSING, Health.SUSPENDED):
        return Progress.RUNNING, assessment.message
    return Progress.SUCCEEDED, assessment.message  # argo: Healthy, Missing, or no health


def _of_resource(assessment: Assessment | None) -> tuple[Progress, str] | None:
    if assessment is None:
        return Progress.SUCCEEDED, ""  # argo: a kind without a health check is done as soon as it is applied
    if assessment.health is Health.HEALTHY:
        return Progress.SUCCEEDED, assessment.message
    if assessment.health is Health.DEGRADED and not assessment.fault:
        return Progress.FAILED, assessment.message
    return None


# -- Argo CD's words ---------------------------------------------------------------------------------------------


def shown(key: ResourceKey) -> str:
    return f"{key.group}/{key.kind}/{key.name}"


def waiting_text(turns: Sequence[Turn], what: str = "") -> str:
    """Format Argo CD's waiting message: the first task, and how many more. `awaited` defaults to completion or health.

    argo: the first hook, if there is one.
    """
    hooks = [turn for turn in turns if turn.is_hook]
    natural = "completion of hook" if hooks else "healthy state of"
    if what == DELETION and hooks:
        what += " hook"
    others = "hooks" if len(hooks) == len(turns) else "resources"
    more = f" and {len(turns) - 1} more {others}" if len(turns) > 1 else ""
    return f"waiting for {what or natural} {shown((hooks or turns)[0].key)}{more}"


def with_reasons(message: str, turns: Iterable[Turn]) -> str:
    """argo: equal reasons are listed once."""
    reasons = dict.fromkeys(turn.message for turn in turns if _is_refused(turn))
    return f"{message}, reason: {','.join(reasons)}" if reasons else message


def find_gate_sentence(turn: Turn) -> str:
    """Return why a gate failed the sync, as the gate says it; empty if no gate did."""
    if turn.outcome is Outcome.SYNC_FAILED:
        return turn.message.removeprefix(HELD_BACK) if turn.message.startswith(HELD_BACK) else ""
    is_gate = turn.gate.blocks or turn.gate.timeout or block_wave(turn.task.desired or {}) is not None
    return f"{shown(turn.key)}: {turn.message}" if is_gate and turn.message else ""


def failure_text(message: str, failed: Sequence[Turn]) -> str:
    """Return the messages of gates if only gates failed the sync; otherwise Argo CD's message with all reasons."""
    sentences = {turn: find_gate_sentence(turn) for turn in failed}
    told = list(dict.fromkeys(filter(None, sentences.values())))
    if told and all(sentences.values()):
        return "; ".join(told)
    reasons = [sentences[turn] or turn.message for turn in failed if sentences[turn] or _is_refused(turn)]
    return f"{message}, reason: {','.join(dict.fromkeys(reasons))}" if reasons else message


def _is_refused(turn: Turn) -> bool:
    return turn.outcome is Outcome.SYNC_FAILED


def missing_text(key: ResourceKey) -> str:
    return f"Resource {shown(key)} is missing, it might have been deleted"
