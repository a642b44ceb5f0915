"""Runs one step: all tasks of one phase and wave. Prunes, deletes old hooks, applies kind by kind.

In: tasks whose wave has come. Out: done, failed, or pending. Never: waits; creates a hook twice that carries the mark
of this operation.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from argosy.errors import ArgosyError, ClusterError, TransientError
from argosy.gitops.application import OperationPhase, ResultCode, SyncPhase
from argosy.gitops.application.sync_annotations import DeletePolicy
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.apply import ApplyRequest, ApplyResult, apply_manifest, dry_run_apply
from argosy.gitops.sync.effective_apply_and_prune_options import OperationOptions, SyncSettings
from argosy.gitops.sync.health_gate_annotations import GateKind, append_deadline
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.prune import FindDeletionRefusal, find_prune_refusal, prune_object
from argosy.gitops.sync.task_order import find_defined_kind
from argosy.gitops.sync.task_states import (
    DELETION_OF,
    PHASE_BY_RESULT_CODE,
    SyncTask,
    SyncTaskList,
    format_waiting_message,
)
from argosy.kube.client import Cluster, Propagation
from argosy.kube.resource_key import ResourceKey

AppliedMessages = dict[tuple[ResourceKey, SyncPhase], str]  # messages of the objects that an operation changed


class RunState(enum.Enum):
    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class StepResult:
    state: RunState
    message: str = ""  # why the step is pending
    wait: float | None = None  # seconds until the next try; None: until something changes


DELETION_CHECK_SECONDS = 1.0  # seconds between checks of objects being deleted; a watch event usually comes first
CRD_CHECK_SECONDS = 0.1


class StepRunner:
    def __init__(
        self,
        task_list: SyncTaskList,
        operation_options: OperationOptions,
        settings: SyncSettings,
        cluster: Cluster,
        find_refusal: FindDeletionRefusal,
        now: Callable[[], datetime],
        applied_messages: AppliedMessages,
    ) -> None:
        self._task_list, self._operation_options, self._settings = task_list, operation_options, settings
        self._applied_messages = applied_messages
        self._cluster, self._find_refusal, self._now = cluster, find_refusal, now

    # -- dry run ------------------------------------------------------------------------------------------------

    def dry_run(self, tasks: Sequence[SyncTask]) -> bool:
        """argo: a client-side dry run of all tasks, also of those that are applied server-side."""
        is_valid = True
        for task in tasks:
            result_code, message = self._dry_run_task(task)
            is_valid = is_valid and result_code is not ResultCode.SYNC_FAILED
            if self._operation_options.request.dry_run or result_code is ResultCode.SYNC_FAILED:
                phase = PHASE_BY_RESULT_CODE[result_code]
                phase = OperationPhase.SUCCEEDED if phase is OperationPhase.RUNNING else phase
                self._task_list.record(task, result_code, phase, message)
        return is_valid

    def _dry_run_task(self, task: SyncTask) -> tuple[ResultCode, str]:
        if task.planned.is_prune:
            reason = find_prune_refusal(task.live or {}, self._operation_options, self._find_refusal)
            return (ResultCode.PRUNE_SKIPPED, reason) if reason else (ResultCode.PRUNED, "pruned (dry run)")
        try:
            return ResultCode.SYNCED, dry_run_apply(self._build_apply_request(task))
        except ArgosyError as error:
            return ResultCode.SYNC_FAILED, _format_error(error)

    # -- execution ----------------------------------------------------------------------------------------------

    async def run(self, tasks: Sequence[SyncTask]) -> StepResult:
        prunes = [task for task in tasks if task.planned.is_prune]
        applies = [task for task in tasks if not task.planned.is_prune]
        if not await self._adopt_live_hooks([task for task in applies if task.is_hook]):
            return StepResult(RunState.FAILED)
        unconfirmed = [task for task in prunes if self._operation_options.must_confirm_prune(task.live or {})]
        if unconfirmed:
            return StepResult(RunState.PENDING, format_waiting_message(unconfirmed, "pruning confirmation of"))
        await self._run_concurrently(prunes, self._prune)
        if any(task.has_failed for task in prunes):
            return StepResult(RunState.FAILED)
        if step_result := await self._delete_old_hooks([task for task in applies if task.is_hook and task.is_pending]):
            return step_result
        return await self._apply_tasks([task for task in applies if task.is_pending])

    async def _adopt_live_hooks(self, tasks: Sequence[SyncTask]) -> bool:
        """Find live objects with the names of hooks: our own hook keeps running; another one's finalizer is removed."""

        async def adopt(task: SyncTask) -> None:
            task.live, task.is_live_fresh = await fetch_live(task.key, self._cluster), True
            if task.is_own_hook:
                self._task_list.record(
                    task,
                    ResultCode.SYNCED,
                    OperationPhase.RUNNING,
                    f"{self._build_apply_request(task).kubectl_name} created",
                )
            elif task.live is not None:
                try:
                    await hook_release_and_deletion.remove_hook_finalizer(task.key, task.live, self._cluster)
                except ClusterError as error:
                    message = f"failed to remove hook finalizer: {error.message}"
                    self._task_list.record(task, task.result_code, OperationPhase.ERROR, message)

        await self._run_concurrently(tasks, adopt)
        return not any(task.has_failed for task in tasks)

    async def _delete_old_hooks(self, tasks: Sequence[SyncTask]) -> StepResult | None:
        """argo: delete hooks of earlier operations if their delete policy is BeforeHookCreation."""
        old = [task for task in tasks if task.live and task.has_policy(DeletePolicy.BEFORE_HOOK_CREATION)]

        async def delete(task: SyncTask) -> None:
            assert task.live is not None
            try:
                task.live = await hook_release_and_deletion.delete_hook(
                    task.key, task.live, self._cluster, Propagation(self._operation_options.propagation)
                )
            except ClusterError as error:
                message = f"failed to delete resource: {error.message}"
                self._task_list.record(task, task.result_code, OperationPhase.ERROR, message)

        await self._run_concurrently(old, delete)
        if any(task.has_failed for task in old):
            return StepResult(RunState.FAILED)
        remaining = [task for task in old if task.live is not None]
        return (
            StepResult(RunState.PENDING, format_waiting_message(remaining, DELETION_OF), DELETION_CHECK_SECONDS)
            if remaining
            else None
        )

    async def _prune(self, task: SyncTask) -> None:
        assert task.live is not None
        result_code, message = await prune_object(
            task.key, task.live, self._operation_options, self._find_refusal, self._cluster
        )
        self._task_list.record(task, result_code, PHASE_BY_RESULT_CODE[result_code], message)

    async def _apply_tasks(self, tasks: Sequence[SyncTask]) -> StepResult:
        """argo: a failed kind does not stop the kinds after it."""
        waiting: list[SyncTask] = []
        for _, group in groupby(tasks, key=lambda task: task.key.kind):
            same_kind = list(group)
            if unready_crd := await self._find_unready_crd(same_kind):
                return StepResult(RunState.PENDING, format_waiting_message([unready_crd]), CRD_CHECK_SECONDS)

            async def apply_one(task: SyncTask) -> None:
                if not await self._apply_task(task):
                    waiting.append(task)

            await self._run_concurrently(same_kind, apply_one)
        if any(task.has_failed for task in tasks):
            return StepResult(RunState.FAILED)
        if waiting:
            return StepResult(RunState.PENDING, format_waiting_message(waiting, DELETION_OF), DELETION_CHECK_SECONDS)
        return StepResult(RunState.DONE)

    async def _apply_task(self, task: SyncTask) -> bool:
        """Apply one object. False if the old object must be deleted first."""
        try:
            applied = await apply_manifest(self._build_apply_request(task), self._cluster)
        except TransientError:
            raise
        except ArgosyError as error:
            self._task_list.record(task, ResultCode.SYNC_FAILED, OperationPhase.FAILED, _format_error(error))
            return True
        task.live, task.is_live_fresh = applied.live, True
        if applied.is_waiting:
            return False
        phase = OperationPhase.SUCCEEDED if task.gate.kind is GateKind.IGNORE else OperationPhase.RUNNING
        message = append_deadline(
            self._remember_applied_message(task, applied), task.gate.compute_deadline(self._now())
        )
        self._task_list.record(task, ResultCode.SYNCED, phase, message)
        return True

    def _remember_applied_message(self, task: SyncTask, applied: ApplyResult) -> str:
        """Return what this operation did to the object, also in a pass whose state could not be written."""
        key = task.key, task.planned.phase
        if applied.is_unchanged:
            return self._applied_messages.get(key, applied.message)
        self._applied_messages[key] = applied.message
        return applied.message

    async def _find_unready_crd(self, tasks: Sequence[SyncTask]) -> SyncTask | None:
        """argo: a CRD that was just applied gets some seconds before its custom resources are applied."""
        kinds = {(task.key.group, task.key.kind) for task in tasks}
        crd = next((task for task in self._task_list.tasks if find_defined_kind(task.planned) in kinds), None)
        if crd is None or crd.is_pending:
            return None
        live_crd = crd.live
        if live_crd is None or not _is_established(live_crd):
            live_crd = crd.live = await fetch_live(crd.key, self._cluster)
        if live_crd is None or _is_established(live_crd):
            return None
        max_wait = timedelta(seconds=self._settings.crd_wait_seconds)
        created_at = datetime.fromisoformat(live_crd["metadata"]["creationTimestamp"])
        return crd if self._now() - created_at < max_wait else None

    def _build_apply_request(self, task: SyncTask) -> ApplyRequest:
        assert task.planned.desired is not None
        return ApplyRequest(
            task.key,
            task.planned.desired,
            task.live,
            self._operation_options.build_apply_options(task.planned),
            self._operation_options.state.started,
        )

    async def _run_concurrently(self, tasks: Sequence[SyncTask], work: Callable[[SyncTask], Awaitable[None]]) -> None:
        """Run `work` for all tasks concurrently; errors are raised after all of them have ended."""
        if len(tasks) == 1:
            await work(tasks[0])
            return
        semaphore = asyncio.Semaphore(self._settings.max_concurrent_applies)

        async def run_one(task: SyncTask) -> None:
            async with semaphore:
                await work(task)

        outcomes = await asyncio.gather(*map(run_one, tasks), return_exceptions=True)
        for result_code in outcomes:
            if result_code is not None:
                raise result_code


def _format_error(error: ArgosyError) -> str:
    return error.message if isinstance(error, ClusterError) else str(error)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Established" and condition.get("status") == "True" for condition in conditions)
