"""The head of an Application's pages: what it says once, what it leaves to banners, and which tabs there are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from argosy.features.applications.page_parts.header import build_header, build_tabs, find_window_notice
from argosy.gitops.application import Application, read_application
from argosy.gitops.application.project import Project, SyncWindow

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


def test_what_a_banner_says_is_not_said_twice() -> None:
    condition = {"type": "ComparisonError", "message": "no such path"}
    header = build_header(app({"conditions": [condition], "sync": {"status": "Unknown"}}), None, NOW, MAY)
    assert header.why == ""
    assert header.conditions[0][:2] == ("ComparisonError", "no such path")


def test_what_no_banner_says_is_said() -> None:
    resources = [{"kind": "ConfigMap", "name": "a", "namespace": "ml", "status": "OutOfSync", "version": "v1"}]
    header = build_header(
        app({"sync": {"status": "OutOfSync"}, "resources": resources, "history": [{"id": 0}]}), None, NOW, MAY
    )
    assert header.why == "1 of 1 objects differ: ConfigMap/a"


def test_a_revision_is_shown_with_what_its_commit_says() -> None:
    commit = "a" * 40
    commits = {commit: ("Raise the limit", "Ann", "2026-11-15T11:00:00Z")}
    header = build_header(app({"sync": {"status": "Synced", "revision": commit}}), None, NOW, MAY, commits)
    assert [(revision.text, revision.subject, revision.author, revision.ref) for revision in header.revisions] == [
        (commit, "Raise the limit", "Ann", "main")
    ]


def test_a_hold_is_shown_with_who_and_why() -> None:
    hold = '{"reason": "incident 42", "by": "ann", "at": "", "revision": ""}'
    header = build_header(app(annotations={"argosy.dev/hold": hold}), None, NOW, MAY)
    assert header.hold is not None
    assert (header.hold["by"], header.hold["reason"]) == ("ann", "incident 42")


def test_what_waits_for_a_yes_is_marked() -> None:
    state = {
        "operation": {"sync": {}},
        "phase": "Running",
        "startedAt": "2026-11-15T11:59:00Z",
        "message": "waiting for pruning confirmation of ConfigMap/a",
    }
    assert build_header(app({"operationState": state}), None, NOW, MAY).asks == "2026-11-15T11:59:00Z"
    assert not build_header(app(), None, NOW, MAY).asks


def test_who_may_not_read_logs_has_no_tab_for_them() -> None:
    assert "logs" in [tab.name for tab in build_tabs(app(), "tree")]
    assert "logs" not in [tab.name for tab in build_tabs(app(), "tree", has_logs=False)]


def test_a_window_that_is_closed_says_until_when() -> None:
    window = SyncWindow(kind="deny", schedule="0 11 * * *", duration="2h", applications=("*",))
    notice = find_window_notice(app(), Project(name="team", windows=(window,)), NOW)
    assert notice is not None
    assert (notice.text, notice.is_for_all) == ("sync blocked until 13:00", True)


def test_a_window_that_people_may_pass_says_so() -> None:
    window = SyncWindow(kind="deny", schedule="0 11 * * *", duration="2h", applications=("*",), manual_sync=True)
    notice = find_window_notice(app(), Project(name="team", windows=(window,)), NOW)
    assert notice is not None
    assert (notice.text, notice.is_for_all) == ("automatic sync blocked until 13:00", False)


def test_where_there_is_no_window_nothing_is_marked() -> None:
    assert find_window_notice(app(), Project(name="team"), NOW) is None
