"""Runs the PreDelete and PostDelete hooks of an Application that is being deleted, and releases them afterwards.

In: the hooks of an Application, its live objects. Out: DeletionStep. Never: waits; deletes, changes or waits for an
object that does not belong to the Application. Hooks are marked, so that none runs twice after a restart.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from argosy import annotations as names
from argosy.errors import ClusterError, Conflict, PolicyError
from argosy.gitops.application import Application, OperationPhase, SyncPhase
from argosy.gitops.application.step_results import PlannedTask
from argosy.gitops.application.sync_annotations import DeletePolicy, get_annotation, read_wave
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.checked_deletion import delete_checked
from argosy.gitops.sync.client_side_apply_patch_builder import set_namespace
from argosy.gitops.sync.deletion_step import DeletionChecks, DeletionStep
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.secret_error_redaction import redact_secret_error
from argosy.gitops.sync.sync_plan import OperationContext, prepare_hooks
from argosy.gitops.sync.task_health import AssessAll
from argosy.gitops.sync.task_states import SyncTask, format_key, format_waiting_message, phase_from_health
from argosy.gitops.sync.wave_step import DELETION_CHECK_SECONDS
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

_RUNNING: Final = (OperationPhase.RUNNING, "")
_NOT_SUCCEEDED: Final = (OperationPhase.FAILED, OperationPhase.ERROR)


@dataclass(slots=True)
class DeletionHooks:
    """The hooks of one phase. `last_error` is the message of the condition DeletionError."""

    phase: SyncPhase
    app: Application
    live: Mapping[ResourceKey, Manifest]
    desired: Sequence[Manifest]
    cluster: Cluster
    assess_all: AssessAll
    checks: DeletionChecks
    last_error: str

    async def run(self) -> DeletionStep | None:
        """Return None if all hooks have succeeded.

        argo: runs all hooks at once; here a later wave waits for earlier ones, as in a sync.
        """
        tasks = self._list_tasks()
        self._check_permissions(tasks)
        for _, wave_tasks in groupby(tasks, key=lambda task: task.planned.wave):
            results = [(task, *await self._run_hook(task)) for task in wave_tasks]
            if error := "; ".join(message for _, phase, message in results if phase in _NOT_SUCCEEDED):
                if any(phase is OperationPhase.ERROR for _, phase, _ in results):
                    return DeletionStep(self.app.finalizers, error, error=error, failure=ClusterError(error, code=409))
                return DeletionStep(self.app.finalizers, error, DELETION_CHECK_SECONDS, error)
            if running := [task for task, phase, _ in results if phase is OperationPhase.RUNNING]:
                message = format_waiting_message(running)
                return DeletionStep(self.app.finalizers, message, None, self._find_last_failure(running))
        return None

    async def release(self) -> None:
        """Remove the finalizer of hooks that have run, and delete those whose policy says so."""
        for task in self._list_tasks():
            task.live = await fetch_live(task.key, self.cluster)
            if task.live is None or not self._is_created_here(task.live):
                continue
            # argo: no deletion outside the project, which may have changed since the hook ran
            if task.has_policy(DeletePolicy.HOOK_SUCCEEDED) and not self.checks.find_hook_refusal(task.key):
                await self._delete(task, task.live)
            else:
                await hook_release_and_deletion.remove_hook_finalizer(task.key, task.live, self.cluster)

    # -- planning -----------------------------------------------------------------------------------------------------

    def _list_tasks(self) -> list[SyncTask]:
        planned = [
            _build_task(key_of(hook), self.phase, hook, None)
            for hook in prepare_hooks(self.desired, self.phase, self._operation)
        ]
        # argo: hooks that left Git after they were created count, too
        dropped_keys = self._list_created_keys() - {task.key for task in planned}
        dropped = [_build_task(key, self.phase, None, self.live[key]) for key in dropped_keys]
        return sorted([*planned, *dropped], key=lambda task: (task.planned.wave, task.key))

    @property
    def _operation(self) -> OperationContext:
        return OperationContext(self.app, "", self.app.deletion_timestamp)

    def _list_created_keys(self) -> set[ResourceKey]:
        return {key for key, manifest in self.live.items() if self._is_created_here(manifest)}

    def _is_created_here(self, live: Manifest) -> bool:
        """True if this deletion created the hook, and nobody took it over since."""
        is_marked = get_annotation(live, names.OPERATION) == self._operation.build_hook_mark(self.phase)
        return is_marked and not self.checks.find_foreign_owner(live)

    def _check_permissions(self, tasks: Sequence[SyncTask]) -> None:
        """Refuse all hooks if one is not permitted: who may write to Git must not reach beyond the project."""
        refusals = [
            f"{self._describe(task)} is not permitted: {reason}"
            for task in tasks
            if (reason := self.checks.find_hook_refusal(task.key))
        ]
        if refusals:
            raise PolicyError("; ".join(refusals))

    # -- one hook -----------------------------------------------------------------------------------------------------

    async def _run_hook(self, task: SyncTask) -> tuple[OperationPhase, str]:
        """Return whether the hook runs, has succeeded, has failed, or cannot run (`ERROR`), and why."""
        task.live = await fetch_live(task.key, self.cluster)
        if task.live is not None and not self._is_created_here(task.live):
            if reason := self._find_obstacle(task.live):
                return OperationPhase.ERROR, f"{self._describe(task)} cannot be created: {reason}"
            task.live = await self._delete(task, task.live)
            if task.live is not None:
                return _RUNNING
        if task.live is None and (task.planned.desired is None):
            return OperationPhase.SUCCEEDED, ""
        task.live = task.live or await self._create(task)
        return await self._assess(task, task.live)

    def _find_obstacle(self, live: Manifest) -> str:
        """Return why a live object must not make place for a hook of the same name."""
        reason = self.checks.find_foreign_owner(live) or self.checks.find_refusal(live)
        return f"an object of this name exists, and {reason}" if reason else ""

    async def _create(self, task: SyncTask) -> Manifest:
        assert task.planned.desired is not None
        # argo: created, not applied, so it has no annotation with its last applied configuration
        hook = set_namespace(task.planned.desired, task.key)
        try:
            return await self.cluster.create(hook, manager=names.FIELD_MANAGER)
        except Conflict:
            raise  # it was created meanwhile: the next step sees it
        except ClusterError as error:
            described = copy.copy(redact_secret_error(error, hook))
            described.message, described.key = f"{self._describe(task)} cannot be created: {described.message}", None
            raise described from None

    async def _assess(self, task: SyncTask, live: Manifest) -> tuple[OperationPhase, str]:
        (assessment,) = await self.assess_all([live])
        phase, message = phase_from_health(assessment, is_hook=True) or _RUNNING
        if phase is OperationPhase.SUCCEEDED:
            return phase, message
        if phase is not OperationPhase.RUNNING:
            await self._delete(task, live)  # argo: it is created again until it succeeds
            return OperationPhase.FAILED, f"{self._describe(task)} failed: {message}"
        if live["metadata"].get("deletionTimestamp"):  # by a user: it may go before it has run to its end
            await hook_release_and_deletion.remove_hook_finalizer(task.key, live, self.cluster)
        return phase, message

    async def _delete(self, task: SyncTask, live: Manifest) -> Manifest | None:
        """Delete this object, and return it if it still exists."""
        uid = live["metadata"].get("uid")

        def find_refusal(current: Manifest) -> str:
            is_another = current["metadata"].get("uid") != uid
            return "it is another object" if is_another else self.checks.find_foreign_owner(current)

        await delete_checked(task.key, live, self.cluster, Propagation.FOREGROUND, find_refusal)
        current = await fetch_live(task.key, self.cluster)
        return current if current is not None and current["metadata"].get("uid") == uid else None

    # -- messages -----------------------------------------------------------------------------------------------------

    def _describe(self, task: SyncTask) -> str:
        return f"{self.phase} hook {format_key(task.key)}"

    def _find_last_failure(self, running: Sequence[SyncTask]) -> str:
        """Return the last error as long as a hook that failed runs again."""
        is_repeated = any(f"{self._describe(task)} failed: " in self.last_error for task in running)
        return self.last_error if is_repeated else ""


def _build_task(key: ResourceKey, phase: SyncPhase, desired: Manifest | None, live: Manifest | None) -> SyncTask:
    wave = read_wave(desired or live or {})
    return SyncTask(PlannedTask(key, phase, wave, desired, live, is_hook=True), live)
