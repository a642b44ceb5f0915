"""The condition DeletionError of a deletion that fails."""

from __future__ import annotations

import pytest

from argosy.errors import ClusterError
from argosy.gitops.application import Application, read_application
from argosy.gitops.reconciler.deletion import build_deletion_result
from argosy.gitops.sync.deletion_step import DeletionStep

FINALIZERS = ("pre-delete-finalizer.argocd.argoproj.io",)
SINCE = "2026-01-01T00:00:00Z"


def failing(message: str) -> DeletionStep:
    return DeletionStep(FINALIZERS, error=message, failure=ClusterError(message))


def app_with_error(message: str) -> Application:
    condition = {"type": "DeletionError", "message": message, "lastTransitionTime": SINCE}
    metadata = {"name": "models", "namespace": "argocd", "finalizers": list(FINALIZERS)}
    return read_application({"metadata": metadata, "spec": {}, "status": {"conditions": [condition]}})


@pytest.mark.parametrize(("now", "is_written"), [("2026-01-01T00:00:01Z", False), ("2026-01-01T00:01:00Z", True)])
def test_refusals_with_changing_texts_are_written_at_intervals(now: str, *, is_written: bool) -> None:
    """Each write triggers the next attempt, so a text that always changes would defeat the backoff."""
    app = app_with_error("Job/ml/hook: request 1 was denied")
    result = build_deletion_result(app, failing("Job/ml/hook: request 2 was denied"), now)
    assert result.failure is not None and (result.patch is not None) == is_written


def test_refusal_of_another_object_is_written_at_once() -> None:
    app = app_with_error("Job/ml/hook: request 1 was denied")
    result = build_deletion_result(app, failing("Job/ml/other: denied"), "2026-01-01T00:00:01Z")
    assert [item["message"] for item in (result.patch or {})["status"]["conditions"]] == ["Job/ml/other: denied"]


def test_condition_goes_away_at_once_when_the_step_succeeds() -> None:
    step = DeletionStep(FINALIZERS, "waiting for completion of hook batch/Job/before")
    result = build_deletion_result(app_with_error("request 1 was denied"), step, "2026-01-01T00:00:01Z")
    assert result.patch == {"status": {"conditions": []}}
