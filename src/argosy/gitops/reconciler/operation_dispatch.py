"""Decides in each pass what happens to the operation of an Application: begin, advance, terminate, or auto-sync.

In: an Application and its compared state. Out: OperationResult. Never: writes the Application; compares anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from argosy import annotations as names
from argosy.gitops.application import Application, OperationRequest, Progress
from argosy.gitops.application.project import Project
from argosy.gitops.policy.sync_windows import verdict
from argosy.gitops.reconciler.app_state import Look
from argosy.gitops.reconciler.desired_state import Assembler
from argosy.gitops.reconciler.destination import Ground, Shut
from argosy.gitops.reconciler.operation import begun, spelled
from argosy.gitops.reconciler.operation_end import REMOVED, is_removed, why_superseded
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.reconciler.status_update import Operation
from argosy.gitops.reconciler.unknown_state import standing
from argosy.gitops.status import events
from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.gitops.status.hold import read_hold, told
from argosy.gitops.sync.auto_sync import Later, Refusal, Start, Target, decide
from argosy.gitops.sync.termination import TERMINATING
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written

CLOSED: Final = 30.0  # seconds until a closed sync window is checked again


class OperationDispatcher:
    """Begins, advances, terminates, rejects or postpones the operation of an Application, one pass at a time."""

    def __init__(self, desired_states: Assembler, now: Callable[[], datetime]) -> None:
        self._desired_states, self._now = desired_states, now

    async def run(
        self,
        destination: Ground,
        app: Application,
        project: Project,
        settings: Rules,
        app_state: Look,
        seconds_waited: float,
    ) -> Operation:
        state = app.state
        if app.operation is not None and (state is None or state.progress.is_over):
            return await self._begin_operation(destination, app, app.operation, project, settings, seconds_waited)
        if state is None or state.progress.is_over:
            return await self._auto_sync(destination, app, project, settings, app_state)
        if state.progress is Progress.RUNNING and (
            reason := self._find_termination_reason(destination, app, project, settings, app_state)
        ):
            return Operation(replace(state, progress=Progress.TERMINATING, message=f"{TERMINATING}{reason}"), 0.0)
        step = await destination.operator.step(app, state, project, settings, await destination.cluster.kinds())
        is_over = step.state.progress.is_over
        end_events = (events.completed(app, step.state),) if is_over else ()
        return Operation(step.state, 0.0 if is_over else step.wait, is_over=is_over, events=end_events)

    def _find_termination_reason(
        self, destination: Ground, app: Application, project: Project, settings: Rules, app_state: Look
    ) -> str:
        """Return why the running operation must be terminated; empty if it goes on."""
        if is_removed(app):
            return REMOVED
        return why_superseded(
            app, app_state, self._build_sync_target(app, app_state), project, settings, destination.cache, self._now()
        )

    def reject(self, app: Application, errors: Sequence[Condition]) -> Operation:
        """argo: an operation of an invalid Application ends before it starts."""
        if app.operation is None and not is_removed(app):
            return Operation(app.state)
        now, state = self._now(), app.state
        if app.operation is not None and (state is None or state.progress.is_over):
            state = begun(app.operation, now, state)
        assert state is not None
        state = replace(state, progress=Progress.ERROR, message=spelled(errors), finished=written(now))
        return Operation(state, is_over=True, events=(events.completed(app, state),))

    async def _begin_operation(
        self,
        destination: Ground,
        app: Application,
        request: OperationRequest,
        project: Project,
        settings: Rules,
        seconds_waited: float = 0.0,
    ) -> Operation:
        step = await destination.operator.begin(
            app, request, project, settings, await destination.cluster.kinds(), seconds_waited
        )
        return Operation(step.state, step.wait, events=(events.started(app, step.state),))

    async def _auto_sync(
        self, destination: Ground, app: Application, project: Project, settings: Rules, app_state: Look
    ) -> Operation:
        """Start an automated sync if one is due and allowed."""
        has_errors = any(condition.type is ConditionType.COMPARISON_ERROR for condition in app_state.conditions)
        if not app_state.is_whole or has_errors:
            return Operation(app.state)
        target, hold = self._build_sync_target(app, app_state), read_hold(app.annotations)
        decision = decide(app, standing(app, app_state), target, self._now(), settings.heal)
        if decision is not None and not verdict(project.windows, app, self._now(), is_manual=False).is_allowed:
            # argo: while a sync window blocks, nothing is decided, and earlier conditions stay
            wait = None if isinstance(decision, Refusal) else CLOSED
            return Operation(app.state, wait, is_decided=False)
        match decision:
            case Start() | Later() if hold is not None:
                hold_message = f"Skipping sync attempt to [{' '.join(target.revisions)}]: {told(hold, app.name)}"
                return Operation(app.state, conditions=(Condition(ConditionType.SYNC_ERROR, hold_message),))
            case Start(request):
                return replace(await self._begin_operation(destination, app, request, project, settings), asked=request)
            case Later(seconds):
                return Operation(app.state, seconds)
            case Refusal(message):
                return Operation(app.state, conditions=(Condition(ConditionType.SYNC_ERROR, message),))
        return Operation(app.state)

    def _build_sync_target(self, app: Application, app_state: Look) -> Target:
        """argo: with manifest-generate-paths, a new revision may be known to contain no changes."""
        revisions, state = app_state.assembled.revisions, app.state
        if state is None or not state.has_result or not app.annotations.get(names.MANIFEST_GENERATE_PATHS):
            return Target(revisions)
        synced = state.revisions or (state.revision,)
        return Target(revisions, may_hold_changes=not self._desired_states.is_carried(app, synced))

    def postpone(self, app: Application, unavailable: Shut) -> Operation:
        """Say in the operation that it waits for the cluster, or end it at once if it is to be terminated."""
        if app.operation is None and not is_removed(app):
            return Operation(app.state, unavailable.wait, is_decided=False)
        state, operation_events = app.state, tuple[Manifest, ...]()
        if app.operation is not None and (state is None or state.progress.is_over):
            state = begun(app.operation, self._now(), state)
            operation_events = (events.started(app, state),)
        assert state is not None
        if state.progress is Progress.TERMINATING or is_removed(app):
            message = f"operation terminated; resources that it created may still be running: {unavailable.said}"
            state = replace(state, progress=Progress.FAILED, message=message, finished=written(self._now()))
            return Operation(
                state, 0.0, is_over=True, events=(*operation_events, events.completed(app, state)), is_decided=False
            )
        state = replace(state, message=f"waiting for {unavailable.said}")
        return Operation(state, unavailable.wait, events=operation_events, is_decided=False)
