"""Operations that end before a step runs, and automated syncs that do not start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from argosy import annotations as names
from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    SyncRequest,
    read_application,
)
from argosy.gitops.application.project_spec import Project, SyncWindow
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.reconciler.destination_cluster import DestinationCluster, DestinationUnavailable
from argosy.gitops.reconciler.operation_dispatcher import CLOSED_WINDOW_RECHECK_SECONDS, OperationDispatcher
from argosy.gitops.reconciler.operation_termination_decision import is_operation_removed
from argosy.gitops.reconciler.reconcile_result_patch import OperationResult
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.kube.resource_key import ResourceKey

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 1, tzinfo=UTC)
AT = "2026-01-01T00:00:00Z"
SOURCE = {"repoURL": "https://git.example/x", "path": "p"}
ERRORS = [AppCondition(ConditionType.INVALID_SPEC_ERROR, "it is wrong")]
REQUEST = OperationRequest(SyncRequest(revision="main"), username="ann")
RUNNING = OperationState(REQUEST, OperationPhase.RUNNING, started="2025-12-31T23:00:00Z")
UNAVAILABLE = DestinationUnavailable("the cluster does not respond", 15.0)


def build_dispatcher() -> OperationDispatcher:
    return OperationDispatcher(cast(DesiredStateBuilder, None), lambda: NOW)


def build_app(**more: Any) -> Application:
    helm: dict[str, Any] = {"parameters": []}
    spec = {"source": {**SOURCE, "helm": helm}}
    return replace(read_application({"metadata": {"name": "models"}, "spec": spec}), **more)


def test_operation_of_an_invalid_application_ends_with_its_sources() -> None:
    result = build_dispatcher().reject(build_app(operation=REQUEST), ERRORS)
    state = result.state
    assert state is not None and result.is_over
    assert (state.phase, state.message, state.finished) == ("Error", "InvalidSpecError: it is wrong", AT)
    assert (state.has_result, state.revision, list(state.sources)) == (True, "main", [SOURCE])
    assert [event["reason"] for event in result.events] == ["OperationCompleted"]


def test_operation_without_a_project_ends_without_a_result() -> None:
    state = build_dispatcher().reject(build_app(operation=REQUEST), ERRORS, is_project_known=False).state
    assert state is not None and (state.phase, state.has_result, state.sources) == ("Error", False, ())


def test_running_operation_keeps_its_result_when_the_project_is_deleted() -> None:
    running = replace(RUNNING, has_result=True, revision="abc")
    state = build_dispatcher().reject(build_app(operation=REQUEST, state=running), ERRORS, is_project_known=False).state
    assert state is not None and (state.has_result, state.revision, state.started) == (True, "abc", RUNNING.started)


def test_nothing_is_rejected_without_an_operation() -> None:
    ended = replace(RUNNING, phase=OperationPhase.SUCCEEDED)
    result = build_dispatcher().reject(build_app(state=ended), ERRORS)
    assert (result.state, result.is_over, result.events) == (ended, False, ())


def test_requested_operation_waits_for_an_unavailable_cluster() -> None:
    result = build_dispatcher().postpone(build_app(operation=REQUEST), UNAVAILABLE)
    state = result.state
    assert state is not None and not result.is_over
    assert (state.phase, state.message) == ("Running", "waiting for the cluster does not respond")
    assert (state.has_result, result.wait, result.is_auto_sync_evaluated) == (False, 15.0, False)
    assert [event["reason"] for event in result.events] == ["OperationStarted"]


def test_terminated_operation_of_an_unavailable_cluster_ends_with_its_sources() -> None:
    terminating = build_app(operation=REQUEST, state=replace(RUNNING, phase=OperationPhase.TERMINATING))
    removed = build_app(state=RUNNING)
    assert is_operation_removed(removed)
    for app in (terminating, removed):
        result = build_dispatcher().postpone(app, UNAVAILABLE)
        state = result.state
        assert state is not None and result.is_over
        assert (state.phase, state.has_result, list(state.sources)) == ("Failed", True, [SOURCE])


class ForgottenOperations:
    """Stands for the runner of operations, which automated sync asks for nothing if it does not start."""

    def forget_operation(self, app: Application) -> None: ...


def build_automated_app(**annotations: str) -> Application:
    spec = {"source": SOURCE, "syncPolicy": {"automated": {}}}
    return read_application({"metadata": {"name": "models", "annotations": annotations}, "spec": spec})


def build_state(status: SyncStatus = SyncStatus.OUT_OF_SYNC, *conditions: AppCondition) -> AppState:
    key, manifest = ResourceKey("", "ConfigMap", "ml", "a"), {"metadata": {"name": "a"}}
    comparison = AppComparison([Pair(key, manifest, None, differs=True)], status=status)
    return AppState(DesiredState((), ("abc",), []), comparison, {}, conditions=conditions)


async def decide(app: Application, app_state: AppState, *windows: SyncWindow) -> OperationResult:
    destination = cast(DestinationCluster, SimpleNamespace(operation_runner=ForgottenOperations()))
    settings = ReconcilerSettings(cast(Repositories, None), cast(Any, None))
    return await build_dispatcher().run(destination, app, Project(windows=windows), settings, app_state, 0.0)


@pytest.mark.parametrize(
    "app_state",
    [
        build_state(SyncStatus.UNKNOWN),
        build_state(SyncStatus.SYNCED),
        build_state(SyncStatus.OUT_OF_SYNC, AppCondition(ConditionType.COMPARISON_ERROR, "it cannot be compared")),
    ],
    ids=["unknown", "synced", "comparison error"],
)
async def test_automated_sync_does_not_start(app_state: AppState) -> None:
    assert await decide(build_automated_app(), app_state) == OperationResult(None)


async def test_closed_window_postpones_automated_sync_without_evaluating_it() -> None:
    window = SyncWindow(kind="deny", schedule="* * * * *", duration="1h", applications=("*",))
    result = await decide(build_automated_app(), build_state(), window)
    assert result == OperationResult(None, CLOSED_WINDOW_RECHECK_SECONDS, is_auto_sync_evaluated=False)
    assert await decide(build_automated_app(), build_state(SyncStatus.SYNCED), window) == OperationResult(None)


async def test_hold_prevents_automated_sync_and_says_so() -> None:
    [condition] = (await decide(build_automated_app(**{names.HOLD: "bad model"}), build_state())).conditions
    assert condition.type is ConditionType.SYNC_ERROR
    assert condition.message.startswith("Skipping sync attempt to [abc]: ") and "bad model" in condition.message
