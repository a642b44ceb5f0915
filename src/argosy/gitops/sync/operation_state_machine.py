"""Advances a sync operation by one call, as far as it can go without waiting.

In: the operation as it was last written, its tasks, a cluster, and functions of other steps. Out: the operation as it
must be written now, and when to call again. Never: waits or sleeps.

The process may be killed before or after any call to the cluster, and restarts with the state that was written last.
Therefore a second apply changes nothing; a hook carries the mark of its operation and is created once; a finalizer
keeps it until its result has been written, and it is deleted only in a later call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import compress

from argosy.errors import ClusterError, Conflict
from argosy.gitops.application import Application, OperationPhase, OperationState, ResultCode, SyncPhase
from argosy.gitops.application.step_results import PlannedTask
from argosy.gitops.application.sync_annotations import DeletePolicy
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.effective_apply_and_prune_options import OperationOptions, SyncSettings
from argosy.gitops.sync.health_gate_annotations import append_pause, read_deadline, read_pause
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.notebook_wave_holds import NOTEBOOK_CHECK_SECONDS, FindWaveHold
from argosy.gitops.sync.observed_generation_check import correct_stale_health
from argosy.gitops.sync.operation_termination import TERMINATING_PREFIX, terminate_operation
from argosy.gitops.sync.prune import FindDeletionRefusal
from argosy.gitops.sync.sync_options import SyncOptions
from argosy.gitops.sync.task_health import AssessAll, update_running_tasks
from argosy.gitops.sync.task_states import (
    DELETION_OF,
    NOT_APPLIED_PREFIX,
    SyncTask,
    SyncTaskList,
    append_reasons,
    format_failure_message,
    format_waiting_message,
)
from argosy.gitops.sync.task_validation import CheckPermission, find_invalid_tasks
from argosy.gitops.sync.wave_step import DELETION_CHECK_SECONDS, AppliedMessages, RunState, StepResult, StepRunner
from argosy.kube.client import Catalog, Cluster, Propagation
from argosy.kube.objects.timestamps_and_delays import MAX_CLOCK_SKEW, format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NAMESPACE

TASKS_RUNNING = "one or more tasks are running"  # argo: these messages are Argo CD's
TASKS_FAILED = "one or more synchronization tasks completed unsuccessfully"
OBJECTS_FAILED_TO_APPLY = "one or more objects failed to apply"
TIMEOUT_MESSAGE = "operation is terminating due to timeout"


@dataclass(frozen=True, slots=True)
class AdvanceResult:
    """Write the state first. Then call again: after `wait` seconds, or when something changes if it is None."""

    state: OperationState
    wait: float | None = None


async def advance_operation(
    state: OperationState,
    tasks: Sequence[PlannedTask],
    app: Application,
    options: SyncOptions,
    *,
    cluster: Cluster,
    assess_all: AssessAll,
    settings: SyncSettings,
    now: Callable[[], datetime],
    find_refusal: FindDeletionRefusal,
    check_permission: CheckPermission,
    is_mass_prune: bool = False,
    shared_resource: str = "",
    find_hold: FindWaveHold = lambda wave: None,
    applied_messages: AppliedMessages | None = None,
) -> AdvanceResult:
    """Run one call. `is_mass_prune`: confirm all prunes. `shared_resource` names an object of another Application too.

    `find_hold` returns what keeps a wave from starting. `applied_messages` are the messages of earlier passes of this
    operation whose state could not be written.
    """
    if state.phase.is_over:
        return AdvanceResult(state)
    assess_all = correct_stale_health(assess_all, settings.observed_kinds)
    operation_options = OperationOptions(app, state, options, is_mass_prune=is_mass_prune)
    task_list = SyncTaskList(state, tasks)
    if state.phase is OperationPhase.TERMINATING:
        phase, message = await terminate_operation(
            task_list, cluster, assess_all, Propagation(operation_options.propagation)
        )
        if state.message == TIMEOUT_MESSAGE:
            message += ", triggered by controller sync timeout"
        elif state.message.startswith(TERMINATING_PREFIX):
            message += f": {state.message.removeprefix(TERMINATING_PREFIX)}"
        return AdvanceResult(_finish_operation(state, task_list, phase, message, now))
    if has_timed_out(state, settings, now()):
        return AdvanceResult(replace(state, phase=OperationPhase.TERMINATING, message=TIMEOUT_MESSAGE), 0.0)
    if shared_resource and options.is_on("FailOnSharedResource"):
        return AdvanceResult(
            _finish_operation(state, task_list, OperationPhase.FAILED, f"Shared resource found: {shared_resource}", now)
        )
    messages = {} if applied_messages is None else applied_messages
    runner = StepRunner(task_list, operation_options, settings, cluster, find_refusal, now, messages)
    return await _OperationCall(
        task_list, operation_options, settings, cluster, assess_all, now, check_permission, runner, find_hold
    ).advance()


def has_timed_out(state: OperationState, settings: SyncSettings, now: datetime) -> bool:
    """argo: all attempts of an operation share one timeout."""
    if not settings.timeout_seconds or not state.started:
        return False
    return now - datetime.fromisoformat(state.started) > timedelta(seconds=settings.timeout_seconds)


def _finish_operation(
    state: OperationState, task_list: SyncTaskList, phase: OperationPhase, message: str, now: Callable[[], datetime]
) -> OperationState:
    return replace(
        state,
        phase=phase,
        message=message,
        finished=format_timestamp(now()),
        results=task_list.results,
        has_result=True,
    )


@dataclass(slots=True)
class _OperationCall:
    """The steps of Argo CD's sync, in order; each returns a result if the call ends with it."""

    task_list: SyncTaskList
    operation_options: OperationOptions
    settings: SyncSettings
    cluster: Cluster
    assess_all: AssessAll
    now: Callable[[], datetime]
    check_permission: CheckPermission
    runner: StepRunner
    find_hold: FindWaveHold
    kinds: Catalog = field(default_factory=dict)
    is_checked: bool = False  # kinds and permissions of the pending tasks were checked in this call

    async def advance(self) -> AdvanceResult:
        if not self.task_list.has_results and (result := await self._create_namespace_and_dry_run()):
            return result
        while True:
            if result := await self._run_round():
                return result

    async def _create_namespace_and_dry_run(self) -> AdvanceResult | None:
        """argo: once per operation: create the namespace, then dry-run everything else."""
        if result := await self._check_pending_tasks():
            return result
        tasks = [
            task for task in self.task_list.tasks if not self.operation_options.is_skipped_as_in_sync(task.planned)
        ]
        namespace_task = next((task for task in tasks if self._is_new_namespace(task)), None)
        if self.operation_options.request.dry_run:
            namespace_task = None
        elif namespace_task is not None and (await self.runner.run([namespace_task])).state is RunState.FAILED:
            return self._finish(
                OperationPhase.FAILED, append_reasons("the namespace failed to apply", [namespace_task])
            )
        elif namespace_task is not None and self.operation_options.app.policy.namespace_metadata is None:
            # argo: a namespace that exists is no task any more, so its result stays Running
            self.task_list.tasks.remove(namespace_task)
        served_tasks = [task for task in tasks if task is not namespace_task and task.key.group_kind in self.kinds]
        if not self.runner.dry_run(served_tasks):
            return self._finish(OperationPhase.FAILED, "one or more objects failed to apply (dry run)")
        if self.operation_options.request.dry_run:
            return self._finish(OperationPhase.SUCCEEDED, "successfully synced (no more tasks)")
        return None

    def _is_new_namespace(self, task: SyncTask) -> bool:
        destination = ResourceKey(*NAMESPACE, "", self.operation_options.app.destination.namespace)
        return task.key == destination and task.live is None and not task.planned.is_prune

    async def _check_pending_tasks(self) -> AdvanceResult | None:
        if self.is_checked:
            return None
        self.kinds = await self.cluster.kinds()
        pending = [task for task in self.task_list.tasks if task.is_pending]
        invalid_tasks = find_invalid_tasks(
            pending, self.task_list, self.kinds, self.operation_options, self.check_permission
        )
        for invalid in invalid_tasks:
            self.task_list.record(invalid.task, ResultCode.SYNC_FAILED, None, invalid.message)
        self.is_checked = True
        if not invalid_tasks:
            return None
        causes = "; ".join(sorted({invalid.cause for invalid in invalid_tasks}))
        return self._finish(OperationPhase.FAILED, f"one or more synchronization tasks are not valid: {causes}")

    async def _run_round(self) -> AdvanceResult | None:
        """Run one round. None if a step was run whose end may be visible at once."""
        await update_running_tasks(self.task_list, self.cluster, self.assess_all, self.now)
        unwritten_hooks = [
            task for task in self.task_list.tasks if task.is_hook and task.is_over and not task.is_written
        ]
        running = self._list_awaited()
        if unwritten_hooks or running:
            # The end of a hook must be written before anything else happens, because after that the hook may be
            # deleted.
            message = format_waiting_message(running) if running else TASKS_RUNNING
            return self._build_running(message, 0.0 if unwritten_hooks else self._seconds_until_deadline(running))
        if being_deleted := await self._list_being_deleted():
            return self._build_running(format_waiting_message(being_deleted, DELETION_OF), DELETION_CHECK_SECONDS)
        await self._read_finished_hooks()
        await self._remove_hook_finalizers()
        if self.task_list.list_failures():
            return await self._fail_operation(
                OBJECTS_FAILED_TO_APPLY
                if self.operation_options.state.message.startswith(OBJECTS_FAILED_TO_APPLY)
                else TASKS_FAILED
            )
        return await self._run_next_step()

    def _list_awaited(self) -> list[SyncTask]:
        """argo: a step is applied completely before any of its tasks is awaited, because they may depend on each other.

        After a failure the rest of the step is not applied any more, and only hooks are awaited.
        """
        running = [task for task in self.task_list.tasks if self.task_list.is_awaited(task)]
        if not self._is_step_partly_applied():
            return running
        return [task for task in running if task.is_hook] if self.task_list.list_failures() else []

    def _is_step_partly_applied(self) -> bool:
        """True if a step is applied only partly, because of a deletion or a CRD that was not ready."""
        pending = self._list_pending()
        step = {task for task in self.task_list.tasks if pending and task.step == pending[0].step}
        applies = {task for task in step if not task.planned.is_prune}
        # The namespace is created before its step, so it says nothing about the others.
        applied = {task for task in applies if not task.is_pending and task.key.kind != "Namespace"}
        return bool(applied) and not applies.isdisjoint(pending)

    async def _list_being_deleted(self) -> list[SyncTask]:
        """argo: pruned objects must be gone before anything else happens."""
        remaining = []
        for task in self.task_list.tasks:
            if task.result_code is ResultCode.PRUNED and task.live is not None:
                task.live = await fetch_live(task.key, self.cluster)
                if task.live is not None and task.live["metadata"].get("deletionTimestamp"):
                    remaining.append(task)
        return remaining

    async def _read_finished_hooks(self) -> None:
        """Read finished hooks that the watch has not delivered yet, so that they are released and deleted."""
        for task in self.task_list.tasks:
            if task.is_hook and task.is_over and task.live is None and not task.is_live_fresh:
                task.live, task.is_live_fresh = await fetch_live(task.key, self.cluster), True
                if not task.is_own_hook:
                    task.live = None  # of another operation

    async def _remove_hook_finalizers(self) -> None:
        for task in self.task_list.tasks:
            if task.is_hook and task.is_over and task.live is not None:
                try:
                    await hook_release_and_deletion.remove_hook_finalizer(task.key, task.live, self.cluster)
                except ClusterError as error:
                    if error.is_retryable or isinstance(error, Conflict):
                        raise
                    message = f"Failed to remove hook finalizer: {error.message}"
                    self.task_list.record(task, task.result_code, OperationPhase.ERROR, message)

    async def _fail_operation(self, message: str) -> AdvanceResult:
        sync_fail_tasks = self.task_list.sync_fail_tasks
        has_cleanup = any(task.is_pending for task in sync_fail_tasks) or any(
            self._list_hooks_to_delete(DeletePolicy.HOOK_FAILED)
        )
        if has_cleanup and self.task_list.results != self.operation_options.state.results:
            # The failure is written before anything reacts to it, because its cause may be gone by then.
            return self._build_running(message, 0.0)
        await self._delete_hooks(DeletePolicy.HOOK_FAILED)
        if pending := [task for task in sync_fail_tasks if task.is_pending]:
            step_result = await self.runner.run(pending)
            if step_result.state is RunState.PENDING:
                return self._build_running(step_result.message, step_result.wait)
            return self._build_running(format_waiting_message(pending), 0.0)
        failures = set(self.task_list.list_failures())
        is_cause = (
            task in failures or task.result_code is ResultCode.SYNC_FAILED
            for task in self.task_list.tasks_without_sync_fail
        )
        failure_message = format_failure_message(
            message, list(compress(self.task_list.tasks_without_sync_fail, is_cause))
        )
        if any(task.result_code is ResultCode.SYNC_FAILED for task in sync_fail_tasks):
            failure_message += "\n" + append_reasons("one or more SyncFail hooks failed", sync_fail_tasks)
        return self._finish(OperationPhase.FAILED, failure_message)

    def _list_pending(self) -> list[SyncTask]:
        pending = [task for task in self.task_list.tasks_without_sync_fail if task.is_pending]
        return [task for task in pending if not self.operation_options.is_skipped_as_in_sync(task.planned)]

    async def _run_next_step(self) -> AdvanceResult | None:
        pending = self._list_pending()
        if not pending:
            return await self._finish_successfully("successfully synced (no more tasks)")
        if pause := self._find_pause_end():
            return self._build_running(TASKS_RUNNING, (pause - self.now()).total_seconds())
        if result := await self._check_pending_tasks():
            return result
        step = [task for task in pending if task.step == pending[0].step]
        if result := await self._check_hold(step):
            return result
        step_result = await self.runner.run(step)
        step_tasks = [task for task in self.task_list.tasks if task.step == step[0].step and not task.is_pending]
        return await self._finish_step(step_tasks, step_result, is_last=len(step) == len(pending))

    async def _check_hold(self, step: Sequence[SyncTask]) -> AdvanceResult | None:
        """Hold a wave until its notebooks have succeeded. Prunes are not held."""
        applies = [task for task in step if not task.planned.is_prune]
        phase, wave = step[0].step
        hold = self.find_hold(wave) if phase is SyncPhase.SYNC and applies else None
        if hold is None:
            return None
        if not hold.has_failed:
            return self._build_running(hold.message, NOTEBOOK_CHECK_SECONDS)
        for task in applies:
            self.task_list.record(
                task, ResultCode.SYNC_FAILED, OperationPhase.FAILED, f"{NOT_APPLIED_PREFIX}{hold.message}"
            )
        return await self._fail_operation(OBJECTS_FAILED_TO_APPLY)

    async def _finish_step(
        self, step: Sequence[SyncTask], step_result: StepResult, *, is_last: bool
    ) -> AdvanceResult | None:
        if step_result.state is RunState.PENDING:
            return self._build_running(step_result.message, step_result.wait)
        if step_result.state is RunState.FAILED:
            if running := [task for task in step if task.is_running]:  # argo: also objects, whose health is not awaited
                return self._build_running(
                    format_waiting_message(running), None if any(map(self.task_list.is_awaited, running)) else 0.0
                )
            if self.task_list.sync_fail_tasks:
                return self._build_running(TASKS_RUNNING, 0.0)  # the failure is written before SyncFail hooks run
            return await self._fail_operation(OBJECTS_FAILED_TO_APPLY)
        if is_last and not any(task.is_hook or task.gate.is_blocking for task in step):
            # argo: health of the last wave is not awaited
            return await self._finish_successfully("successfully synced (all tasks run)")
        if is_last or not self.settings.wave_delay_seconds:
            return None
        until = self.now() + timedelta(seconds=self.settings.wave_delay_seconds)
        running = [task for task in step if task.is_running]
        message = append_pause(format_waiting_message(running) if running else TASKS_RUNNING, until)
        return self._build_result(OperationPhase.RUNNING, message, self.settings.wave_delay_seconds)

    async def _finish_successfully(self, message: str) -> AdvanceResult:
        await self._delete_hooks(DeletePolicy.HOOK_SUCCEEDED)
        return self._finish(OperationPhase.SUCCEEDED, message)

    async def _delete_hooks(self, policy: DeletePolicy) -> None:
        """argo: the end of the operation decides, not the end of the hook."""
        for task in self._list_hooks_to_delete(policy):
            assert task.live is not None
            try:
                await hook_release_and_deletion.delete_hook(
                    task.key, task.live, self.cluster, Propagation(self.operation_options.propagation)
                )
            except ClusterError as error:
                if error.is_retryable or isinstance(error, Conflict):
                    raise  # argo: would leave the hook; here the operation is not over, and this pass is repeated
                message = f"failed to delete resource: {error.message}"
                self.task_list.record(task, task.result_code, OperationPhase.ERROR, message)

    def _list_hooks_to_delete(self, policy: DeletePolicy) -> Iterator[SyncTask]:
        for task in self.task_list.tasks:
            if task.is_pending and task.is_own_hook:
                continue  # created just before a crash: not recorded yet
            if task.is_hook and task.live is not None and not task.is_running and task.has_policy(policy):
                yield task

    # -- results ------------------------------------------------------------------------------------------------

    def _seconds_until_deadline(self, running: Sequence[SyncTask]) -> float | None:
        times = [deadline for task in running if (deadline := read_deadline(task.message))]
        return max(0.0, (min(times) - self.now()).total_seconds()) if times else None

    def _build_running(self, message: str, wait: float | None) -> AdvanceResult:
        """Return a running state, and keep the end of a pause between waves in the message."""
        return self._build_result(OperationPhase.RUNNING, append_pause(message, self._find_pause_end()), wait)

    def _find_pause_end(self) -> datetime | None:
        """Return when the pause between two waves ends; None if there is none, it is over, or the clock jumped back."""
        pause = read_pause(self.operation_options.state.message)
        max_pause = timedelta(seconds=self.settings.wave_delay_seconds) + MAX_CLOCK_SKEW
        return pause if pause and timedelta(0) < pause - self.now() <= max_pause else None

    def _finish(self, phase: OperationPhase, message: str) -> AdvanceResult:
        return AdvanceResult(_finish_operation(self.operation_options.state, self.task_list, phase, message, self.now))

    def _build_result(self, phase: OperationPhase, message: str, wait: float | None) -> AdvanceResult:
        results = self.task_list.results
        state = replace(self.operation_options.state, phase=phase, message=message, results=results, has_result=True)
        return AdvanceResult(state, wait)
