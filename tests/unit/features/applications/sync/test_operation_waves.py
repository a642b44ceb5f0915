"""Sync operations as pages show them: ordered waves, and the task that blocks progress."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from argosy.features.applications.sync.operation_waves import build_operation_timeline
from argosy.gitops.application import Application, read_application

NOW = datetime(2026, 11, 15, 12, 1, tzinfo=UTC)


def resource(name: str, wave: int, status: str = "OutOfSync") -> dict[str, Any]:
    return {"kind": "ConfigMap", "namespace": "ml", "name": name, "status": status, "syncWave": wave, "version": "v1"}


def result(name: str, phase: str = "Running", status: str = "Synced", **more: Any) -> dict[str, Any]:
    whole = {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "ml", "name": name}
    return {**whole, "status": status, "hookPhase": phase, "syncPhase": "Sync", "message": f"{name} said", **more}


def app(results: list[dict[str, Any]], phase: str = "Running", **more: Any) -> Application:
    state = {
        "operation": {"sync": {}, "initiatedBy": {"username": "ann"}},
        "phase": phase,
        "message": "waiting",
        "startedAt": "2026-11-15T12:00:00Z",
        "syncResult": {"revision": "a" * 40, "resources": results},
        **more,
    }
    resources = [resource("one", 0), resource("two", 1), resource("three", 2)]
    return read_application(
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "web", "namespace": "argocd"},
            "spec": {
                "source": {"repoURL": "https://git.example.com/a.git", "path": "."},
                "destination": {"namespace": "ml", "server": "https://kubernetes.default.svc"},
            },
            "status": {"operationState": state, "resources": resources},
        }
    )


def test_requested_operation_does_not_show_results_of_the_previous_one() -> None:
    wire = dict(app([result("one", "Succeeded")], "Succeeded", finishedAt="2026-11-15T12:00:09Z").wire)
    requested_app = read_application({**wire, "operation": {"sync": {}, "initiatedBy": {"username": "bob"}}})
    line = build_operation_timeline(requested_app, NOW)
    assert line is not None and (line.by, line.phase, line.revision, line.done) == ("bob", "Running", "", 0)
    assert line.is_running and "has not started yet" in line.message and line.blocker is None


def test_never_synced_application_has_no_operation_timeline() -> None:
    assert (
        build_operation_timeline(read_application({"metadata": {"name": "a"}, "spec": {"destination": {}}}), NOW)
        is None
    )


def test_waves_are_listed_in_execution_order() -> None:
    line = build_operation_timeline(app([result("two"), result("one", "Succeeded")]), NOW)
    assert line is not None
    assert [(step.wave, step.word) for step in line.steps] == [(0, "Succeeded"), (1, "Running"), (2, "Waiting")]


def test_blocker_is_the_running_task_of_the_first_unfinished_wave() -> None:
    line = build_operation_timeline(app([result("one", "Succeeded"), result("two")]), NOW)
    assert line is not None
    assert line.blocker is not None
    assert (line.blocker.task.name, line.blocker.wave, line.blocker.is_failed) == ("two", 1, False)
    assert line.blocker.elapsed == 60.0


def test_failed_task_is_the_blocker_before_a_running_one() -> None:
    line = build_operation_timeline(
        app([result("one", "Succeeded"), result("two"), result("three", "Failed", "SyncFailed")]), NOW
    )
    assert line is not None
    assert line.blocker is not None
    assert (line.blocker.task.name, line.blocker.is_failed) == ("three", True)
    assert [task.name for task in line.failed] == ["three"]


def test_succeeded_operation_has_no_blocker() -> None:
    results = [result(name, "Succeeded") for name in ("one", "two", "three")]
    line = build_operation_timeline(app(results, "Succeeded", finishedAt="2026-11-15T12:00:10Z"), NOW)
    assert line is not None
    assert line.blocker is None
    assert (line.done, line.total, line.seconds) == (3, 3, 10.0)


def test_hook_is_listed_in_its_phase() -> None:
    hook = result("migrate", "Succeeded", hookType="PreSync", syncPhase="PreSync")
    line = build_operation_timeline(app([hook, result("one")]), NOW)
    assert line is not None
    assert line.steps[0].phase == "PreSync"
    assert line.steps[0].tasks[0].hook == "PreSync"


def test_hook_still_running_counts_as_done_after_the_operation_ended() -> None:
    hook = result("after", "Running", hookType="PostSync", syncPhase="PostSync")
    line = build_operation_timeline(app([result("one"), hook], "Succeeded", finishedAt="2026-11-15T12:00:10Z"), NOW)
    assert line is not None
    assert [task.word for step in line.steps for task in step.tasks] == ["Synced", "Succeeded"]
    assert (line.done, line.total) == (2, 2)
