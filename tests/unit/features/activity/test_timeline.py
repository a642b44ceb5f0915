"""Activity timeline: syncs, events and settings changes, newest first; sync windows of a project."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from argosy.features.activity.timeline import (
    ActivityEntry,
    ActivityFilter,
    build_timeline,
    iterate_event_entries,
    iterate_settings_entries,
    iterate_sync_entries,
)
from argosy.features.projects.project_views import build_project_view

APP: dict[str, Any] = {
    "apiVersion": "argoproj.io/v1alpha1",
    "kind": "Application",
    "metadata": {"name": "web", "namespace": "argocd"},
    "spec": {"project": "team"},
    "status": {
        "history": [
            {"id": 0, "revision": "a" * 40, "deployedAt": "2026-11-15T10:00:00Z", "initiatedBy": {"automated": True}},
            {"id": 1, "revision": "b" * 40, "deployedAt": "2026-11-15T11:00:00Z", "initiatedBy": {"username": "ann"}},
        ],
        "operationState": {"phase": "Failed", "message": "no such image", "finishedAt": "2026-11-15T12:00:00Z"},
    },
}


def test_timeline_lists_syncs_failures_and_rollbacks_newest_first() -> None:
    timeline = build_timeline(iterate_sync_entries([APP]), ActivityFilter())
    assert [entry.title for entry in timeline.shown] == ["Sync failed", "Synced", "Synced"]
    assert [entry.who for entry in timeline.shown[1:]] == ["ann", "automatic"]
    history = [*APP["status"]["history"], {"id": 2, "revision": "a" * 40, "deployedAt": "2026-11-15T13:00:00Z"}]
    (back, *_) = build_timeline(iterate_sync_entries([{**APP, "status": {"history": history}}]), ActivityFilter()).shown
    assert (back.title, back.text, back.severity) == ("Rolled back", "to deployment 0, as deployment 2", "warning")


def test_filter_by_kind_keeps_counts_of_other_kinds() -> None:
    event = ActivityEntry("2026-11-15T09:00:00Z", "event", "info", "Pulled", "Pod x: pulled", "web")
    timeline = build_timeline([*iterate_sync_entries([APP]), event], ActivityFilter(kinds=("event",)))
    assert [entry.title for entry in timeline.shown] == ["Pulled"] and dict(timeline.counts)["sync"] == 3
    bad = build_timeline([*iterate_sync_entries([APP]), event], ActivityFilter(severity="bad"))
    assert [entry.title for entry in bad.shown] == ["Sync failed"]


def test_page_beyond_the_last_shows_the_last_page() -> None:
    many = [ActivityEntry(f"2026-11-15T09:{n // 60:02}:{n % 60:02}Z", "event", "info", str(n), "") for n in range(120)]
    timeline = build_timeline(many, ActivityFilter(page=99))
    assert (timeline.page, timeline.pages, len(timeline.shown), timeline.shown[-1].title) == (3, 3, 20, "0")


def test_events_without_a_visible_application_are_left_out() -> None:
    def event(name: str) -> dict[str, object]:
        about = {"kind": "Pod", "namespace": "ml", "name": name}
        return {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Failed", "type": "Warning", "count": 3}

    def whose(kind: str, namespace: str, name: str) -> tuple[str, str] | None:
        return ("web", "/apps/argocd/web") if name == "mine" else None

    entries = list(iterate_event_entries([event("mine"), event("theirs")], whose))
    assert [(entry.app, entry.severity, entry.count) for entry in entries] == [("web", "warning", 3)]


def test_settings_change_has_the_field_manager_as_author() -> None:
    fields = [
        {"manager": "kubectl-edit", "time": "2026-11-15T09:00:00Z"},
        {"manager": "x", "subresource": "status", "time": "t"},
    ]
    config = {"kind": "ConfigMap", "metadata": {"name": "argocd-cm", "managedFields": fields}}
    assert [(entry.title, entry.who) for entry in iterate_settings_entries([config])] == [
        ("ConfigMap argocd-cm", "kubectl-edit")
    ]


def test_project_view_shows_next_window_opening_and_invalid_schedule() -> None:
    windows = [
        {"kind": "allow", "schedule": "0 22 * * *", "duration": "1h", "applications": ["*"]},
        {"kind": "deny", "schedule": "nonsense", "duration": "1h", "applications": ["*"]},
    ]
    project = {"metadata": {"name": "team"}, "spec": {"sourceRepos": ["*"], "syncWindows": windows}}
    view = build_project_view(project, [APP], datetime(2026, 11, 15, 12, tzinfo=UTC))
    assert (view.windows[0].opens, view.windows[0].is_active, view.apps) == ("2026-11-15T22:00:00Z", False, 1)
    assert view.windows[1].fault


def test_busy_application_does_not_hide_entries_of_another() -> None:
    busy = [ActivityEntry(f"2026-11-16T{number:06}", "sync", "ok", "Synced", "", "busy") for number in range(3000)]
    timeline = build_timeline([*busy, *iterate_sync_entries([APP])], ActivityFilter(app="web"))
    assert timeline.total == 3 and timeline.of == 3003
    assert build_timeline(busy, ActivityFilter()).total == 2000
