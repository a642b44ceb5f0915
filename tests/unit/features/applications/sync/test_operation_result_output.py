"""Message and exit code of `argosy app sync` after a failed sync."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_REFUSED
from argosy.features.applications.sync.operation_result_output import report_outcome
from argosy.gitops.application import Application, Destination, read_application
from argosy.gitops.application.project_spec import read_project
from argosy.gitops.policy.projects import find_permission_error, list_violations
from argosy.kube.resource_key import ResourceKey

PROJECT = read_project({"metadata": {"name": "team"}, "spec": {"sourceRepos": [], "destinations": []}})


def failed_app(message: str, results: tuple[str, ...] = (), namespace: str = "ml") -> Application:
    parts = {"group": "", "version": "v1", "kind": "Secret", "namespace": "ml", "name": "token"}
    resources = [{**parts, "status": "SyncFailed", "message": text} for text in results]
    source = {"repoURL": "https://git.example/ml", "path": "app", "targetRevision": "main"}
    state: dict[str, Any] = {
        "operation": {"sync": {}}, "phase": "Failed", "message": message, "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:01Z", "syncResult": {"revision": "a" * 40, "resources": resources},
    }  # fmt: skip
    spec = {"project": "team", "source": source, "destination": {"name": "prod", "namespace": namespace}}
    metadata = {"name": "models", "namespace": "argocd"}
    return read_application({"metadata": metadata, "spec": spec, "status": {"operationState": state}})


SECRET, CLUSTER = ResourceKey("", "Secret", "ml", "token"), Destination(server="https://a", namespace="ml")
REFUSALS = [
    *list_violations(PROJECT, failed_app(""), control_namespace="elsewhere"),
    find_permission_error(PROJECT, SECRET, is_namespaced=True, destination=CLUSTER),
    find_permission_error(
        PROJECT, SECRET._replace(kind="Node", namespace=""), is_namespaced=False, destination=CLUSTER
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda text: text.partition(":")[0])
@pytest.mark.parametrize("is_result", [False, True])
def test_project_violation_exits_as_refused_and_points_to_the_project(
    refusal: str, is_result: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    app = failed_app("some failed", (refusal,)) if is_result else failed_app(f"InvalidSpecError: {refusal}")
    assert report_outcome(app, "sync") == EXIT_REFUSED
    assert capsys.readouterr().err.splitlines()[-1] == (
        "next: see what the project permits: argosy proj get team, and change the project, "
        "or move the Application: argosy app set models --project NAME"
    )


def test_other_sync_failure_is_not_reported_as_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_outcome(failed_app("the Job failed"), "sync") == EXIT_NEGATIVE
    assert capsys.readouterr().err.splitlines()[-1] == "next: argosy app get models --show-operation"


@pytest.mark.parametrize(
    ("namespace", "advice"),
    [
        ("ml", "argosy app set models --sync-option CreateNamespace=true, then: argosy app sync models"),
        ("Team_ML", "'Team_ML' cannot be the name of a namespace (a lowercase RFC 1123 label"),
        ("a" * 64, "cannot be the name of a namespace (must be no more than 63 "),
    ],
)
def test_create_namespace_is_suggested_only_for_valid_names(
    namespace: str, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        report_outcome(failed_app(f'namespaces "{namespace}" not found', namespace=namespace), "sync") == EXIT_NEGATIVE
    )
    last_line = capsys.readouterr().err.splitlines()[-1]
    assert advice in last_line
    assert ("CreateNamespace" in last_line) == (namespace == "ml")
