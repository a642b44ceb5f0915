"""Decides in each pass what happens to the operation of an Application: begin, advance, terminate, or auto-sync.

In: an Application and its compared state. Out: OperationResult. Never: writes the Application; compares anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from argosy import annotations as names
from argosy.gitops.application import Application, OperationPhase, OperationRequest, OperationState
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.sources import remove_empty_options
from argosy.gitops.policy.sync_windows import evaluate_sync_windows
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.destination_cluster import DestinationCluster, DestinationUnavailable
from argosy.gitops.reconciler.local_manifests import LOAD_ERROR, find_size_problem, without_manifests
from argosy.gitops.reconciler.operation_runner import format_conditions, start_operation
from argosy.gitops.reconciler.operation_termination_decision import (
    OPERATION_REMOVED,
    find_superseding_reason,
    is_operation_removed,
)
from argosy.gitops.reconciler.reconcile_result_patch import OperationResult
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.unknown_state import adjust_sync_status
from argosy.gitops.status import application_event_manifests
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.sync_hold_annotation import describe_hold, read_hold
from argosy.gitops.sync.auto_sync_decision import DelaySync, RefuseSync, StartSync, SyncTarget, decide_auto_sync
from argosy.gitops.sync.operation_termination import TERMINATING_PREFIX
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp

CLOSED_WINDOW_RECHECK_SECONDS: Final = 30.0  # seconds until a closed sync window is checked again


class OperationDispatcher:
    """Begins, advances, terminates, rejects or postpones the operation of an Application, one pass at a time."""

    def __init__(self, desired_states: DesiredStateBuilder, now: Callable[[], datetime]) -> None:
        self._desired_states, self._now = desired_states, now

    async def run(
        self,
        destination: DestinationCluster,
        app: Application,
        project: Project,
        settings: ReconcilerSettings,
        app_state: AppState,
        seconds_waited: float,
    ) -> OperationResult:
        state = app.state
        if state is None or state.phase.is_over:
            destination.operation_runner.forget_operation(app)
        if app.operation is not None and (state is None or state.phase.is_over):
            return await self._begin_operation(destination, app, app.operation, project, settings, seconds_waited)
        if state is None or state.phase.is_over:
            return await self._auto_sync(destination, app, project, settings, app_state)
        if state.phase is OperationPhase.RUNNING and (
            reason := self._find_termination_reason(destination, app, project, settings, app_state)
        ):
            return OperationResult(
                replace(state, phase=OperationPhase.TERMINATING, message=f"{TERMINATING_PREFIX}{reason}"), 0.0
            )
        kinds = await destination.cluster.kinds()
        step = await destination.operation_runner.step(app, state, project, settings, kinds, app_state)
        if not step.state.phase.is_over:
            return OperationResult(step.state, step.wait)
        destination.operation_runner.drop_comparison(app)
        # argo: a sync that was refused for its signature has the revision, so that a newer one is synced automatically
        rejected_revisions = () if app_state.desired.is_verified else app_state.desired.revisions
        final_state = _add_missing_result(app, step.state, rejected_revisions)
        end_events = (application_event_manifests.operation_completed_event(app, final_state),)
        return OperationResult(final_state, 0.0, is_over=True, events=end_events)

    def _find_termination_reason(
        self,
        destination: DestinationCluster,
        app: Application,
        project: Project,
        settings: ReconcilerSettings,
        app_state: AppState,
    ) -> str:
        """Return why the running operation must be terminated; empty if it goes on."""
        if is_operation_removed(app):
            return OPERATION_REMOVED
        return find_superseding_reason(
            app, app_state, self._build_sync_target(app, app_state), project, settings, destination.cache, self._now()
        )

    def reject(
        self, app: Application, errors: Sequence[AppCondition], *, is_project_known: bool = True
    ) -> OperationResult:
        """argo: an operation of an invalid Application ends before it starts; without its project it has no result."""
        if app.operation is None and not is_operation_removed(app):
            return OperationResult(app.state)
        now, state = self._now(), app.state
        if app.operation is not None and (state is None or state.phase.is_over):
            state = start_operation(app.operation, now, state)
        assert state is not None
        state = replace(
            state, phase=OperationPhase.ERROR, message=format_conditions(errors), finished=format_timestamp(now)
        )
        state = _add_missing_result(app, state) if is_project_known else state
        return OperationResult(
            state, is_over=True, events=(application_event_manifests.operation_completed_event(app, state),)
        )

    async def _begin_operation(
        self,
        destination: DestinationCluster,
        app: Application,
        request: OperationRequest,
        project: Project,
        settings: ReconcilerSettings,
        seconds_waited: float = 0.0,
    ) -> OperationResult:
        if problem := find_size_problem(request.sync.manifests):
            condition = AppCondition(ConditionType.COMPARISON_ERROR, f"{LOAD_ERROR}: {problem}")
            return self.reject(replace(app, operation=without_manifests(request)), [condition])
        step = await destination.operation_runner.begin(
            app, request, project, settings, await destination.cluster.kinds(), seconds_waited
        )
        return OperationResult(
            step.state, step.wait, events=(application_event_manifests.operation_started_event(app, step.state),)
        )

    async def _auto_sync(
        self,
        destination: DestinationCluster,
        app: Application,
        project: Project,
        settings: ReconcilerSettings,
        app_state: AppState,
    ) -> OperationResult:
        """Start an automated sync if one is due and allowed."""
        has_errors = any(condition.type is ConditionType.COMPARISON_ERROR for condition in app_state.conditions)
        if not app_state.is_complete or has_errors:
            return OperationResult(app.state)
        target, hold = self._build_sync_target(app, app_state), read_hold(app.annotations)
        decision = decide_auto_sync(app, adjust_sync_status(app, app_state), target, self._now(), settings.heal_backoff)
        if (
            decision is not None
            and not evaluate_sync_windows(project.windows, app, self._now(), is_manual=False).is_allowed
        ):
            # argo: while a sync window blocks, nothing is decided, and earlier conditions stay
            wait = None if isinstance(decision, RefuseSync) else CLOSED_WINDOW_RECHECK_SECONDS
            return OperationResult(app.state, wait, is_auto_sync_evaluated=False)
        match decision:
            case StartSync() | DelaySync() if hold is not None:
                hold_message = (
                    f"Skipping sync attempt to [{' '.join(target.revisions)}]: {describe_hold(hold, app.name)}"
                )
                return OperationResult(app.state, conditions=(AppCondition(ConditionType.SYNC_ERROR, hold_message),))
            case StartSync(request):
                return replace(
                    await self._begin_operation(destination, app, request, project, settings), new_request=request
                )
            case DelaySync(seconds):
                return OperationResult(app.state, seconds)
            case RefuseSync(message):
                return OperationResult(app.state, conditions=(AppCondition(ConditionType.SYNC_ERROR, message),))
        return OperationResult(app.state)

    def _build_sync_target(self, app: Application, app_state: AppState) -> SyncTarget:
        """argo: with manifest-generate-paths, a new revision may be known to contain no changes."""
        revisions, state = app_state.desired.revisions, app.state
        if state is None or not state.has_result or not app.annotations.get(names.MANIFEST_GENERATE_PATHS):
            return SyncTarget(revisions)
        synced = state.revisions or (state.revision,)
        return SyncTarget(revisions, may_hold_changes=not self._desired_states.is_unchanged_since(app, synced))

    def postpone(self, app: Application, unavailable: DestinationUnavailable) -> OperationResult:
        """Say in the operation that it waits for the cluster, or end it at once if it is to be terminated."""
        if app.operation is None and not is_operation_removed(app):
            return OperationResult(app.state, unavailable.wait, is_auto_sync_evaluated=False)
        state, operation_events = app.state, tuple[Manifest, ...]()
        if app.operation is not None and (state is None or state.phase.is_over):
            state = start_operation(app.operation, self._now(), state)
            operation_events = (application_event_manifests.operation_started_event(app, state),)
        assert state is not None
        if state.phase is OperationPhase.TERMINATING or is_operation_removed(app):
            message = f"operation terminated; resources that it created may still be running: {unavailable.reason}"
            state = replace(state, phase=OperationPhase.FAILED, message=message, finished=format_timestamp(self._now()))
            state = _add_missing_result(app, state)
            return OperationResult(
                state,
                0.0,
                is_over=True,
                events=(*operation_events, application_event_manifests.operation_completed_event(app, state)),
                is_auto_sync_evaluated=False,
            )
        state = replace(state, message=f"waiting for {unavailable.reason}")
        return OperationResult(state, unavailable.wait, events=operation_events, is_auto_sync_evaluated=False)


def _add_missing_result(
    app: Application, state: OperationState, rejected_revisions: tuple[str, ...] = ()
) -> OperationState:
    """argo: an operation that ended before its revision was known has a result too, with its sources."""
    if state.has_result:
        return state
    sync = state.request.sync
    sources = tuple(remove_empty_options(source.wire) for source in sync.sources or app.sources)
    revision, revisions = sync.revision, sync.revisions
    if not revision and not revisions and rejected_revisions:
        revision, revisions = ("", rejected_revisions) if app.has_many_sources else (rejected_revisions[0], ())
    return replace(state, has_result=True, revision=revision, revisions=revisions, sources=sources)
