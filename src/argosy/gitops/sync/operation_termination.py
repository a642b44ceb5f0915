"""Terminates an operation that a user stopped or that timed out.

In: the tasks of an operation. Out: the final phase and Argo CD's message. Never: leaves a running hook behind.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application import OperationPhase
from argosy.gitops.application.sync_annotations import DeletePolicy
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.task_health import AssessAll
from argosy.gitops.sync.task_states import SyncTask, SyncTaskList, phase_from_health
from argosy.kube.client import Cluster, Propagation

TERMINATING_PREFIX: Final = "operation is terminating: "  # followed by the reason if the engine terminates it


async def terminate_operation(
    task_list: SyncTaskList, cluster: Cluster, assess_all: AssessAll, propagation: Propagation
) -> tuple[OperationPhase, str]:
    is_clean = True
    for task in task_list.tasks:
        if not task.is_hook:
            continue
        try:
            task.live = await _fetch_hook(task, cluster)
            await _stop_hook(task_list, task, cluster, assess_all, propagation)
        except ClusterError as error:
            is_clean = False
            task_list.record(task, task.result_code, OperationPhase.ERROR, f"Failed to delete: {error.message}")
    if is_clean:
        return OperationPhase.FAILED, "Operation terminated"
    return OperationPhase.ERROR, "Operation termination had errors"


async def _fetch_hook(task: SyncTask, cluster: Cluster) -> dict[str, object] | None:
    try:
        return await fetch_live(task.key, cluster)
    except ClusterError as error:
        if error.is_retryable:  # try again: a hook that cannot be read may still be running
            raise TransientError(str(error)) from error
        raise


async def _stop_hook(
    task_list: SyncTaskList, task: SyncTask, cluster: Cluster, assess_all: AssessAll, propagation: Propagation
) -> None:
    if task.is_over:
        if task.live is not None:
            await hook_release_and_deletion.remove_hook_finalizer(task.key, task.live, cluster)
        return
    if task.is_pending and not task.is_own_hook:
        return  # not started by this operation, not even before a crash
    if task.live is None:
        task_list.record(task, task.result_code, OperationPhase.SUCCEEDED, "Terminated")  # argo: the same result
        return
    (assessment,) = await assess_all([task.live])
    new_phase = phase_from_health(assessment, is_hook=True)
    is_over = new_phase is not None and new_phase[0] is not OperationPhase.RUNNING
    is_unknown = assessment is not None and bool(assessment.fault)  # argo: it may still be running
    if not is_over or is_unknown or task.has_policy(DeletePolicy.HOOK_FAILED):
        await hook_release_and_deletion.delete_hook(task.key, task.live, cluster, propagation)
    else:
        await hook_release_and_deletion.remove_hook_finalizer(task.key, task.live, cluster)
    if is_over and new_phase is not None:
        task_list.record(task, task.result_code, *new_phase)
    else:
        task_list.record(task, task.result_code, OperationPhase.FAILED, "Terminated")
