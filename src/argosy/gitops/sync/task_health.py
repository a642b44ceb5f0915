"""Updates running tasks from the health of their objects.

In: the tasks of an operation. Out: the same, with finished ones marked. Never: finishes a task because of an object
that may be older than the apply: the object is read again first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from argosy.errors import ClusterError
from argosy.gitops.application import OperationPhase, ResultCode
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.sync.client_side_apply_patch_builder import find_manifest_type
from argosy.gitops.sync.health_gate_annotations import GateKind, append_deadline, read_deadline, strip_deadline
from argosy.gitops.sync.task_states import SyncTask, SyncTaskList, format_missing_message, phase_from_health
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest

AssessAll = Callable[[Sequence[Manifest]], Awaitable[list[Assessment | None]]]


async def update_running_tasks(
    task_list: SyncTaskList, cluster: ClusterReader, assess_all: AssessAll, now: Callable[[], datetime]
) -> None:
    running = [task for task in task_list.tasks if task.is_running and task.gate.kind is not GateKind.IGNORE]
    assessments = await _assess_tasks(running, assess_all)
    to_read = [
        task for task in running if not task.is_live_fresh and _needs_read(task_list, task, assessments.get(task))
    ]
    if to_read:
        read_errors = await asyncio.gather(
            *(_read_live(task_list, task, cluster) for task in to_read), return_exceptions=True
        )
        for result_code in read_errors:
            if result_code is not None:
                raise result_code
        assessments |= await _assess_tasks([task for task in to_read if task.is_running], assess_all)
    for task in running:
        if task.is_running and task.live is not None and task in assessments:
            _update_task(task_list, task, assessments[task], now())


def _needs_read(task_list: SyncTaskList, task: SyncTask, assessment: Assessment | None) -> bool:
    """True if the task seems finished, or its object seems deleted although it is awaited."""
    if task.live is None:
        return task_list.is_awaited(task)
    new_phase = phase_from_health(assessment, is_hook=task.is_hook)
    return new_phase is not None and new_phase[0] is not OperationPhase.RUNNING


async def _assess_tasks(tasks: Sequence[SyncTask], assess_all: AssessAll) -> dict[SyncTask, Assessment | None]:
    live_tasks = [(task, task.live) for task in tasks if task.live is not None]
    if not live_tasks:
        return {}
    assessments = await assess_all([live for _, live in live_tasks])
    return {task: assessment for (task, _), assessment in zip(live_tasks, assessments, strict=True)}


async def _read_live(task_list: SyncTaskList, task: SyncTask, cluster: ClusterReader) -> None:
    try:
        task.live, task.is_live_fresh = await cluster.get(task.key), True
    except ClusterError as error:
        if error.is_retryable:
            raise  # argo: would fail the sync, and the retry would run its hooks again
        if error.code != 404:
            task_list.record(
                task, task.result_code, OperationPhase.ERROR, f"Failed to get live resource: {error.message}"
            )
            return
        task.live = None
    if task.live is None:
        task_list.record(task, ResultCode.SYNC_FAILED, OperationPhase.ERROR, format_missing_message(task.key))


def _format_finished_message(task_list: SyncTaskList, task: SyncTask, assessment: Assessment | None) -> str:
    """Say in the message that a custom resource without a health check is not awaited."""
    message = (
        f"{task.key.name} created" if task.is_hook and assessment is None else strip_deadline(task.message)
    )  # argo
    is_custom = task.live is not None and find_manifest_type(task.live) is None
    if assessment is not None or not is_custom or not task_list.is_awaited(task):
        return message
    return f"{message} (not awaited: no health check for {task.key.group_kind})"


def _update_task(task_list: SyncTaskList, task: SyncTask, assessment: Assessment | None, now: datetime) -> None:
    deadline = read_deadline(task.message)
    new_phase = phase_from_health(assessment, is_hook=task.is_hook)
    if new_phase is not None and new_phase[0] is not OperationPhase.RUNNING:
        phase, message = new_phase
        task_list.record(
            task, task.result_code, phase, message or _format_finished_message(task_list, task, assessment)
        )
    elif deadline is not None and now >= deadline:
        reason = assessment.message if assessment else ""
        timeout_message = f"not healthy within {task.gate.timeout_seconds:g}s" + (f": {reason}" if reason else "")
        task_list.record(task, task.result_code, OperationPhase.FAILED, timeout_message)
    elif new_phase is not None and new_phase[1]:
        task_list.record(task, task.result_code, OperationPhase.RUNNING, append_deadline(new_phase[1], deadline))
