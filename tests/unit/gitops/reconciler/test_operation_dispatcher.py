"""Operations that end before a step runs: rejected, or terminated while the cluster is unavailable."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from argosy.gitops.application import (
    Application,
    OperationPhase,
    OperationRequest,
    OperationState,
    SyncRequest,
    read_application,
)
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.destination_cluster import DestinationUnavailable
from argosy.gitops.reconciler.operation_dispatcher import OperationDispatcher
from argosy.gitops.reconciler.operation_termination_decision import is_operation_removed
from argosy.gitops.status.conditions import AppCondition, ConditionType

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
