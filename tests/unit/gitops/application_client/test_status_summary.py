"""Tests the one-line problem description and the resource rows of an Application."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client import status_summary
from argosy.kube.resource_key import ResourceKey

COMMIT = "4c1d2e3" + "0" * 33
OBJECT = {"version": "v1", "kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "OutOfSync"}


def application(status: dict[str, Any] | None = None, **more: Any) -> Application:
    metadata = {"name": "models", "namespace": "argocd", **more.pop("metadata", {})}
    spec = {"source": {"repoURL": "https://git.example/ml", "path": "app"}, **more.pop("spec", {})}
    return read_application({"metadata": metadata, "spec": spec, "status": status or {}, **more})


def operation(phase: str, message: str = "", **result: Any) -> dict[str, Any]:
    return {
        "operation": {"sync": {}}, "phase": phase, "message": message, "startedAt": "2026-01-01T00:00:00Z",
        "syncResult": {"revision": COMMIT, **result},
    }  # fmt: skip


ILL = {"status": "Degraded", "message": "Caused by serving.kserve.io/InferenceService:ml/a"}
FINDINGS = (
    "InferenceService: 0: transitionStatus | BlockedByFailedLoad | 1: IngressReady | False | not created"
    " | 2: PredictorReady | False | ModelLoadFailed | claim not found | 3: Ready | False | ModelLoadFailed | other"
)
OUT = {"sync": {"status": "OutOfSync", "revision": COMMIT}, "resources": [OBJECT]}


@pytest.mark.parametrize(
    "status, more, expected",
    [
        ({"sync": {"status": "Synced"}, "health": {"status": "Healthy"}}, {}, ""),
        ({}, {}, "not reconciled yet; is a controller running?"),
        (OUT, {}, "never synced: 1 to create or change"),
        ({**OUT, "history": [{"id": 0}]}, {}, "1 of 1 objects differ: ConfigMap/settings"),
        ({**OUT, "operationState": operation("Failed", "no quota")}, {}, "last sync failed: no quota"),
        (
            {**OUT, "operationState": operation("Running", "waiting for completion of hook batch/Job/x")},
            {},
            "waiting for completion of hook batch/Job/x",
        ),
        (OUT, {"operation": {"sync": {}}}, "syncing"),
        (
            {**OUT, "conditions": [{"type": "SharedResourceWarning", "message": "w"},
                                   {"type": "ComparisonError", "message": "no such branch"}]},
            {},
            "ComparisonError: no such branch",
        ),
        (OUT, {"metadata": {"annotations": {"argosy.dev/hold": '{"by": "ann", "reason": "latency"}'}}},
         "held by ann: latency"),
        (OUT, {"metadata": {"annotations": {"argosy.dev/hold": "by hand"}}}, "held: by hand"),
        ({"sync": {"status": "Synced"}, "health": {"status": "Degraded", "message": "no image"}}, {}, "no image"),
        ({"sync": {"status": "Synced"}, "health": {"status": "Degraded", "message": FINDINGS}}, {},
         "InferenceService: ModelLoadFailed: claim not found"),
        (OUT, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "is being deleted"),
    ],
)  # fmt: skip
def test_describe_problem_returns_the_main_reason(status: dict[str, Any], more: dict[str, Any], expected: str) -> None:
    assert status_summary.describe_problem(application(status, **more)) == expected


@pytest.mark.parametrize(
    "status, is_ill, expected",
    [
        ({"sync": {"status": "Synced"}, "health": ILL}, True, "no such claim"),
        ({**OUT, "history": [{"id": 0}], "health": ILL}, False, "no such claim"),
        ({"sync": {"status": "Synced"}, "health": {"status": "Degraded", "message": "x"}}, False, "no such claim"),
        ({"conditions": [{"type": "ComparisonError", "message": "x"}], "health": ILL}, False, "ComparisonError: x"),
    ],
)
def test_given_health_reason_replaces_message_but_not_errors(
    status: dict[str, Any], is_ill: bool, expected: str
) -> None:
    app = application(status)
    assert (status_summary.is_only_unhealthy(app), status_summary.describe_problem(app, "no such claim")) == (
        is_ill,
        expected,
    )


def test_long_error_is_not_truncated_and_fits_one_line() -> None:
    problem = status_summary.describe_problem(
        application({"conditions": [{"type": "ComparisonError", "message": "a\nb" * 200}]})
    )
    assert problem == "ComparisonError: " + "a b" * 200


def test_failed_sync_names_revision_retry_time_and_terminate_command() -> None:
    failed = operation("Running", "one object failed. Retrying attempt #2 at 12:00AM.")
    failed |= {"finishedAt": "2026-01-01T00:00:10Z", "retryCount": 2}
    failed["operation"] = {"sync": {}, "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2}}}
    app = application({"sync": {"status": "Synced"}, "operationState": failed})
    assert status_summary.describe_problem(app) == (
        f"the sync of {COMMIT[:7]} failed and will be retried at 00:00:20 UTC (attempt 2 of 5), and newer commits "
        f"wait; end it: argosy app terminate-op {app.name}: one object failed"
    )


def test_repository_url_is_shortened_in_error_message() -> None:
    message = "Failed to load target state: https://git.example:8443/team/models.git: there is no branch x"
    problem = status_summary.describe_problem(
        application({"conditions": [{"type": "ComparisonError", "message": message}]})
    )
    assert problem == "ComparisonError: models.git: there is no branch x"


@pytest.mark.parametrize(
    "policy, word",
    [
        ({}, "Manual"),
        ({"automated": {}}, "Auto"),
        ({"automated": {"prune": True}}, "Auto-Prune"),
        ({"automated": {"enabled": False, "prune": True}}, "Manual"),
    ],
)
def test_sync_policy_is_described_in_argo_cd_terms(policy: dict[str, Any], word: str) -> None:
    assert status_summary.describe_sync_policy(application(spec={"syncPolicy": policy})) == word


def test_conditions_of_the_same_type_are_counted() -> None:
    types = ["SharedResourceWarning", "SharedResourceWarning", "SyncError"]
    app = application({"conditions": [{"type": condition_type, "message": ""} for condition_type in types]})
    assert status_summary.summarize_conditions(app) == "SharedResourceWarning(2),SyncError"


def test_rows_contain_last_sync_results_and_completed_hooks() -> None:
    results = [
        {"group": "", "kind": "ConfigMap", "namespace": "ml", "name": "settings", "status": "Synced",
         "message": "configmap/settings created", "syncPhase": "Sync"},
        {"group": "batch", "kind": "Job", "namespace": "ml", "name": "migrate", "hookType": "PreSync",
         "hookPhase": "Succeeded", "message": "done", "syncPhase": "PreSync"},
    ]  # fmt: skip
    app = application({**OUT, "operationState": operation("Succeeded", resources=results)})
    settings, migrate = status_summary.list_rows(app)
    assert (settings.status, settings.message, settings.hook) == ("OutOfSync", "configmap/settings created", "")
    assert (migrate.key, migrate.status, migrate.hook) == (
        ResourceKey("batch", "Job", "ml", "migrate"), "Succeeded", "PreSync",
    )  # fmt: skip
    running = application({**OUT, "operationState": operation("Running", resources=results)})
    assert status_summary.list_rows(running)[0].status == "Synced"


def test_row_of_cluster_scoped_object_has_its_result() -> None:
    """argo: the result has the namespace of the destination, the resource has none."""
    role = {"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "ClusterRole", "name": "reader"}
    result = {**role, "namespace": "ml", "status": "SyncFailed", "message": "forbidden", "syncPhase": "Sync"}
    resources = [{**role, "status": "OutOfSync", "syncWave": 3}]
    app = application({**OUT, "resources": resources, "operationState": operation("Failed", resources=[result])})
    [row] = status_summary.list_rows(app)
    assert (row.key.namespace, row.status, row.message) == ("", "OutOfSync", "forbidden")
    assert status_summary.list_failed_tasks(app) == ["wave 3: ClusterRole/reader  SyncFailed: forbidden"]


def test_row_to_prune_says_requires_pruning() -> None:
    app = application({"resources": [{**OBJECT, "requiresPruning": True}]})
    assert status_summary.list_rows(app)[0].message == "ignored (requires pruning)"


def test_ages_and_times_use_kubectl_and_argo_cd_formats() -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    times = ("2026-01-01T23:59:00Z", "2026-01-01T23:00:00Z", "2025-12-01T00:00:00Z")
    assert [status_summary.format_age(text, now) for text in times] == ["60s", "60m", "32d"]
    assert status_summary.format_age("", now) == "" == status_summary.format_age("nonsense", now)
    assert status_summary.format_go_time("2026-01-02T03:04:05+01:00") == "2026-01-02 02:04:05 +0000 UTC"


def test_all_comparison_errors_are_listed() -> None:
    messages = [f"jqPathExpressions: {text!r}: jq cannot compile it,\nsyntax error" for text in (".a[", ".b |")]
    conditions = [{"type": "ComparisonError", "message": text} for text in messages]
    app = application({**OUT, "conditions": [*conditions, {"type": "SharedResourceWarning", "message": "no reason"}]})
    assert status_summary.list_comparison_errors(app) == [
        f"ComparisonError: {text}".replace("\n", " ") for text in messages
    ]
