"""Header of an Application's pages: reason, conditions, hold, sync windows and tabs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from argosy.features.applications.page_parts.header import build_header, build_tabs, find_window_notice
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.project_spec import Project, SyncWindow

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
MAY = {"sync": True, "override": True, "update": True, "delete": True, "logs": True}


def app(status: dict[str, Any] | None = None, **metadata: Any) -> Application:
    source = {"repoURL": "https://git.example.com/a.git", "path": "web", "targetRevision": "main"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "ml"}
    return read_application(
        {
            "metadata": {"name": "web", "namespace": "argocd", **metadata},
            "spec": {"project": "team", "source": source, "destination": destination},
            "status": status or {},
        }
    )


def test_header_does_not_repeat_the_message_of_a_condition() -> None:
    condition = {"type": "ComparisonError", "message": "no such path"}
    header = build_header(app({"conditions": [condition], "sync": {"status": "Unknown"}}), None, NOW, MAY)
    assert header.why == ""
    assert header.conditions[0][:2] == ("ComparisonError", "no such path")


def test_header_states_why_the_application_is_out_of_sync() -> None:
    resources = [{"kind": "ConfigMap", "name": "a", "namespace": "ml", "status": "OutOfSync", "version": "v1"}]
    header = build_header(
        app({"sync": {"status": "OutOfSync"}, "resources": resources, "history": [{"id": 0}]}), None, NOW, MAY
    )
    assert header.why == "1 of 1 objects differ: ConfigMap/a"


def test_header_revision_has_commit_subject_and_author() -> None:
    commit = "a" * 40
    commits = {commit: ("Raise the limit", "Ann", "2026-11-15T11:00:00Z")}
    header = build_header(app({"sync": {"status": "Synced", "revision": commit}}), None, NOW, MAY, commits)
    assert [(revision.text, revision.subject, revision.author, revision.ref) for revision in header.revisions] == [
        (commit, "Raise the limit", "Ann", "main")
    ]


def test_header_hold_has_author_and_reason() -> None:
    hold = '{"reason": "incident 42", "by": "ann", "at": "", "revision": ""}'
    header = build_header(app(annotations={"argosy.dev/hold": hold}), None, NOW, MAY)
    assert header.hold is not None
    assert (header.hold["by"], header.hold["reason"]) == ("ann", "incident 42")


def test_header_marks_an_operation_that_waits_for_confirmation() -> None:
    state = {
        "operation": {"sync": {}},
        "phase": "Running",
        "startedAt": "2026-11-15T11:59:00Z",
        "message": "waiting for pruning confirmation of ConfigMap/a",
    }
    assert build_header(app({"operationState": state}), None, NOW, MAY).asks == "2026-11-15T11:59:00Z"
    assert not build_header(app(), None, NOW, MAY).asks


def test_logs_tab_is_hidden_without_log_permission() -> None:
    assert "logs" in [tab.name for tab in build_tabs(app(), "tree")]
    assert "logs" not in [tab.name for tab in build_tabs(app(), "tree", has_logs=False)]


def test_deny_window_notice_shows_the_end_time() -> None:
    window = SyncWindow(kind="deny", schedule="0 11 * * *", duration="2h", applications=("*",))
    notice = find_window_notice(app(), Project(name="team", windows=(window,)), NOW)
    assert notice is not None
    assert (notice.text, notice.is_for_all) == ("sync blocked until 13:00", True)


def test_window_that_allows_manual_sync_blocks_only_automatic_sync() -> None:
    window = SyncWindow(kind="deny", schedule="0 11 * * *", duration="2h", applications=("*",), manual_sync=True)
    notice = find_window_notice(app(), Project(name="team", windows=(window,)), NOW)
    assert notice is not None
    assert (notice.text, notice.is_for_all) == ("automatic sync blocked until 13:00", False)


def test_project_without_windows_has_no_notice() -> None:
    assert find_window_notice(app(), Project(name="team"), NOW) is None
