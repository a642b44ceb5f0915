"""The state of each task of a sync, and Argo CD's messages for them. Pure.

In: tasks, earlier results, assessments. Out: task states and messages. Never: touches a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy import annotations as names
from argosy.gitops.application import OperationPhase, OperationState, ResourceResult, ResultCode, SyncPhase
from argosy.gitops.application.step_results import Assessment, HealthStatus, PlannedTask
from argosy.gitops.application.sync_annotations import DeletePolicy, get_annotation, list_delete_policies
from argosy.gitops.sync.health_gate_annotations import HealthGate, read_gate
from argosy.gitops.sync.notebook_wave_holds import read_blocked_wave
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey, split_api_version

DELETION_OF = "deletion of"
NOT_APPLIED_PREFIX = "not applied: "  # prefix of the result of an object whose wave a notebook blocks

# argo: the phase of a task that follows from its result code.
PHASE_BY_RESULT_CODE = {
    ResultCode.SYNCED: OperationPhase.RUNNING,
    ResultCode.SYNC_FAILED: OperationPhase.FAILED,
    ResultCode.PRUNED: OperationPhase.SUCCEEDED,
    ResultCode.PRUNE_SKIPPED: OperationPhase.SUCCEEDED,
}
# argo: a Pod, workloads with Pod templates, and CronJobs.
_POD_SPEC_PATHS: Final = (
    ("spec", "template", "spec"),
    ("spec", "jobTemplate", "spec", "template", "spec"),
    ("spec",),
)


@dataclass(slots=True, eq=False)
class SyncTask:
    """A task and its result so far."""

    planned: PlannedTask
    live: Manifest | None
    result_code: ResultCode | None = None
    hook_phase: OperationPhase | None = None
    message: str = ""
    is_written: bool = True  # the result is in the written state, so it survives a crash
    is_live_fresh: bool = False  # `live` was read in this call
    gate: HealthGate = field(default_factory=HealthGate)

    @property
    def key(self) -> ResourceKey:
        return self.planned.key

    @property
    def step(self) -> tuple[SyncPhase, int]:
        return self.planned.phase, self.planned.wave

    @property
    def is_hook(self) -> bool:
        return self.planned.is_hook

    @property
    def is_pending(self) -> bool:
        return self.hook_phase is None

    @property
    def is_running(self) -> bool:
        return self.hook_phase is OperationPhase.RUNNING

    @property
    def is_over(self) -> bool:
        return self.hook_phase is not None and self.hook_phase.is_over

    @property
    def has_failed(self) -> bool:
        return self.is_over and self.hook_phase is not OperationPhase.SUCCEEDED

    @property
    def is_own_hook(self) -> bool:
        """True if the live hook was created by this task of this operation."""
        mark = get_annotation(self.planned.desired or {}, names.OPERATION)
        return mark is not None and self.live is not None and get_annotation(self.live, names.OPERATION) == mark

    def has_policy(self, policy: DeletePolicy) -> bool:
        return policy in list_delete_policies(self.planned.desired or self.live or {})


class SyncTaskList:
    """The tasks of an operation in order, and their results."""

    def __init__(self, state: OperationState, tasks: Sequence[PlannedTask]) -> None:
        results = {(result.key, result.phase): result for result in state.results}
        self._results = dict(results)
        self.tasks = [_build_task(task, results.get((task.result_key, task.phase))) for task in tasks]

    @property
    def has_results(self) -> bool:
        return bool(self._results)

    @property
    def has_many_steps(self) -> bool:
        """argo: the first and the last task are compared, including SyncFail hooks."""
        return bool(self.tasks) and self.tasks[0].step != self.tasks[-1].step

    @property
    def tasks_without_sync_fail(self) -> list[SyncTask]:
        return [task for task in self.tasks if task.planned.phase is not SyncPhase.SYNC_FAIL]

    @property
    def sync_fail_tasks(self) -> list[SyncTask]:
        return [task for task in self.tasks if task.planned.phase is SyncPhase.SYNC_FAIL]

    def record(
        self, task: SyncTask, result_code: ResultCode | None, phase: OperationPhase | None, message: str = ""
    ) -> None:
        """argo: the last non-empty message is kept."""
        if (result_code, phase) != (task.result_code, task.hook_phase):
            task.is_written = False
        task.result_code, task.hook_phase, task.message = result_code, phase, message or task.message
        manifest = task.planned.desired or task.live or {}
        self._results[task.planned.result_key, task.planned.phase] = ResourceResult(
            key=task.planned.result_key,
            version=split_api_version(str(manifest.get("apiVersion") or ""))[1],
            phase=task.planned.phase,
            result_code=result_code,
            hook_phase=phase,
            message=task.message,
            hook=task.planned.phase.value if task.is_hook else "",
            images=list_images(manifest),
        )

    @property
    def results(self) -> tuple[ResourceResult, ...]:
        return tuple(self._results.values())

    def is_awaited(self, task: SyncTask) -> bool:
        """True if the operation waits while this task runs."""
        if task.gate.is_not_awaited:
            return False
        return task.is_running and (task.is_hook or self.has_many_steps or task.gate.is_blocking)

    def list_failures(self) -> list[SyncTask]:
        """Return failed tasks, without SyncFail hooks. Tasks whose health is only reported fail only by their apply."""
        return [
            task
            for task in self.tasks_without_sync_fail
            if task.has_failed and not (task.gate.is_not_awaited and task.result_code is not ResultCode.SYNC_FAILED)
        ]


def _build_task(planned: PlannedTask, result: ResourceResult | None) -> SyncTask:
    sync_task = SyncTask(planned, planned.live, gate=read_gate(planned.desired or {}))
    if result is not None:
        sync_task.result_code, sync_task.hook_phase, sync_task.message = (
            result.result_code,
            result.hook_phase,
            result.message,
        )
    return sync_task


def phase_from_health(assessment: Assessment | None, *, is_hook: bool) -> tuple[OperationPhase, str] | None:
    """Return the new phase and message of a running task; None if it has to wait."""
    return _hook_phase(assessment) if is_hook else _resource_phase(assessment)


def _hook_phase(assessment: Assessment | None) -> tuple[OperationPhase, str]:
    if assessment is None:
        return OperationPhase.SUCCEEDED, ""
    if assessment.fault:
        return OperationPhase.ERROR, f"failed to get resource health: {assessment.fault}"
    if assessment.health in (HealthStatus.UNKNOWN, HealthStatus.DEGRADED):
        return OperationPhase.FAILED, assessment.message
    if assessment.health in (HealthStatus.PROGRESSING, HealthStatus.SUSPENDED):
        return OperationPhase.RUNNING, assessment.message
    return OperationPhase.SUCCEEDED, assessment.message  # argo: Healthy, Missing, or no health


def _resource_phase(assessment: Assessment | None) -> tuple[OperationPhase, str] | None:
    if assessment is None:
        return OperationPhase.SUCCEEDED, ""  # argo: a kind without a health check is done as soon as it is applied
    if assessment.health is HealthStatus.HEALTHY:
        return OperationPhase.SUCCEEDED, assessment.message
    if assessment.health is HealthStatus.DEGRADED and not assessment.fault:
        return OperationPhase.FAILED, assessment.message
    return None


# -- Argo CD's words ---------------------------------------------------------------------------------------------


def format_key(key: ResourceKey) -> str:
    return f"{key.group}/{key.kind}/{key.name}"


def format_waiting_message(tasks: Sequence[SyncTask], awaited: str = "") -> str:
    """Format Argo CD's waiting message: the first task, and how many more. `awaited` defaults to completion or health.

    argo: the first hook, if there is one.
    """
    hooks = [task for task in tasks if task.is_hook]
    default = "completion of hook" if hooks else "healthy state of"
    if awaited == DELETION_OF and hooks:
        awaited += " hook"
    noun = "hooks" if len(hooks) == len(tasks) else "resources"
    more = f" and {len(tasks) - 1} more {noun}" if len(tasks) > 1 else ""
    return f"waiting for {awaited or default} {format_key((hooks or tasks)[0].key)}{more}"


def append_reasons(message: str, tasks: Iterable[SyncTask]) -> str:
    """argo: equal reasons are listed once."""
    reasons = dict.fromkeys(task.message for task in tasks if _has_sync_failed(task))
    return f"{message}, reason: {','.join(reasons)}" if reasons else message


def find_gate_message(task: SyncTask) -> str:
    """Return why a gate failed the sync, as the gate says it; empty if no gate did."""
    if task.result_code is ResultCode.SYNC_FAILED:
        return task.message.removeprefix(NOT_APPLIED_PREFIX) if task.message.startswith(NOT_APPLIED_PREFIX) else ""
    is_gate = (
        task.gate.is_blocking or task.gate.timeout_seconds or read_blocked_wave(task.planned.desired or {}) is not None
    )
    return f"{format_key(task.key)}: {task.message}" if is_gate and task.message else ""


def format_failure_message(message: str, failed: Sequence[SyncTask]) -> str:
    """Return the messages of gates if only gates failed the sync; otherwise Argo CD's message with all reasons."""
    gate_messages = {task: find_gate_message(task) for task in failed}
    messages = list(dict.fromkeys(filter(None, gate_messages.values())))
    if messages and all(gate_messages.values()):
        return "; ".join(messages)
    reasons = [gate_messages[task] or task.message for task in failed if gate_messages[task] or _has_sync_failed(task)]
    return f"{message}, reason: {','.join(dict.fromkeys(reasons))}" if reasons else message


def _has_sync_failed(task: SyncTask) -> bool:
    return task.result_code is ResultCode.SYNC_FAILED


def format_missing_message(key: ResourceKey) -> str:
    return f"Resource {format_key(key)} is missing, it might have been deleted"


def list_images(manifest: Manifest) -> tuple[str, ...]:
    """List the container images of a manifest of any shape, as written."""
    for path in _POD_SPEC_PATHS:
        pod_spec = _get_path(manifest, path)
        containers = pod_spec.get("containers") if isinstance(pod_spec, dict) else None
        if isinstance(containers, list):
            images = (container.get("image") for container in containers if isinstance(container, dict))
            return tuple(image for image in images if isinstance(image, str) and image)
    return ()


def _get_path(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
