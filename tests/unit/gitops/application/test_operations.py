"""Operations, operation state, sync policies and projects, read from manifests."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import ManifestError
from argosy.gitops.application import OperationPhase, ResultCode, SyncPhase, read_application
from argosy.gitops.application.project_spec import KindPattern, read_project
from argosy.gitops.application.sync_policy import RetryStrategy, parse_duration
from argosy.kube.resource_key import ResourceKey


def application(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {}, **fields}


def test_operation_has_its_sync_fields_and_initiator() -> None:
    sync = {"revision": "v2", "prune": True, "syncStrategy": {"apply": {"force": True}},
            "resources": [{"group": "apps", "kind": "Deployment", "name": "web"}]}  # fmt: skip
    operation = read_application(application(operation={"sync": sync, "initiatedBy": {"username": "ann"}})).operation
    assert operation is not None
    assert (operation.username, operation.sync.revision, operation.sync.prune, operation.sync.force) == (
        "ann",
        "v2",
        True,
        True,
    )
    assert not operation.sync.runs_hooks
    assert operation.sync.resources == (ResourceKey("apps", "Deployment", "", "web"),)


@pytest.mark.parametrize(
    ("strategy", "runs_hooks", "force"),
    [
        ({}, True, False),
        ({"hook": {}}, True, False),
        ({"hook": {"force": True}}, True, True),
        ({"apply": {}}, False, False),
        ({"apply": {"force": True}}, False, True),
    ],
)
def test_sync_strategy_determines_hooks_and_force(strategy: dict[str, Any], runs_hooks: bool, force: bool) -> None:
    operation = read_application(application(operation={"sync": {"syncStrategy": strategy}})).operation
    assert operation is not None and (operation.sync.runs_hooks, operation.sync.force) == (runs_hooks, force)


def test_sync_runs_hooks_without_a_strategy() -> None:
    operation = read_application(application(operation={"sync": {}})).operation
    assert operation is not None and operation.sync.runs_hooks


def test_running_operation_state_is_read_with_its_results() -> None:
    state = {
        "operation": {"sync": {"revision": "abc"}, "retry": {"limit": 3}},
        "phase": "Running",
        "startedAt": "2026-01-01T00:00:00Z",
        "retryCount": 2,
        "syncResult": {
            "revision": "abc",
            "resources": [
                {"group": "batch", "version": "v1", "kind": "Job", "namespace": "n", "name": "j", "hookType": "PreSync",
                 "hookPhase": "Running", "syncPhase": "PreSync", "status": "Synced", "message": "created"}
            ],
        },
    }  # fmt: skip
    operation_state = read_application(application(status={"operationState": state})).state
    assert operation_state is not None and operation_state.has_result
    assert (operation_state.phase, operation_state.retries, operation_state.request.retry.limit) == (
        OperationPhase.RUNNING,
        2,
        3,
    )
    result = operation_state.results[0]
    assert result.key == ResourceKey("batch", "Job", "n", "j")
    assert (result.phase, result.result_code, result.hook_phase) == (
        SyncPhase.PRE_SYNC,
        ResultCode.SYNCED,
        OperationPhase.RUNNING,
    )


def test_unknown_operation_phase_is_an_error() -> None:
    with pytest.raises(ManifestError, match=r"status\.operationState\.phase must be one of Running"):
        read_application(application(status={"operationState": {"phase": "Dancing"}}))


def test_automated_sync_is_enabled_by_default() -> None:
    def automated(**fields: Any) -> bool:
        policy = read_application(application(spec={"syncPolicy": {"automated": fields}})).policy
        assert policy.automated is not None
        return policy.automated.is_on

    assert automated() and automated(enabled=True) and not automated(enabled=False)


@pytest.mark.parametrize(("text", "seconds"), [("5s", 5), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25), ("7", 7)])
def test_go_durations_are_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


def test_invalid_retry_duration_is_reported_with_its_field() -> None:
    retry = {"limit": 1, "backoff": {"duration": "soon"}}
    with pytest.raises(ManifestError, match="duration: 'soon' is not a duration"):
        read_application(application(spec={"syncPolicy": {"retry": retry}}))


def test_retry_delay_doubles_up_to_the_maximum() -> None:
    assert [RetryStrategy().delay_seconds(attempts) for attempts in (0, 1, 2, 10, 5000)] == [5, 10, 20, 180, 180]


def test_missing_resource_whitelist_differs_from_an_empty_one() -> None:
    assert read_project({"spec": {}}).namespaced_allowed is None
    assert read_project({"spec": {"namespaceResourceWhitelist": []}}).namespaced_allowed == ()
    listed = read_project({"spec": {"namespaceResourceWhitelist": [{"group": "apps", "kind": "*"}]}})
    assert listed.namespaced_allowed == (KindPattern("apps", "*"),)
