"""View data of a project: permissions, roles and sync windows.

In: an AppProject, the time. Out: ProjectView. Never: reads the clock; enforces a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from argosy.errors import UserError
from argosy.gitops.application.project_spec import KindPattern, Project, SyncWindow, read_project
from argosy.gitops.policy.sync_windows import WindowError, is_active
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.languages.cron import CronError, parse_calendar_schedule


@dataclass(frozen=True)
class WindowView:
    kind: str
    schedule: str
    duration: str
    zone: str
    about: str  # what it applies to
    is_active: bool
    opens: str  # next opening
    allows_manual: bool
    fault: str = ""


@dataclass(frozen=True)
class ProjectView:
    name: str
    about: str
    sources: tuple[str, ...]
    destinations: tuple[tuple[str, str], ...]  # cluster, namespace
    cluster_kinds: tuple[str, ...]
    kinds: tuple[str, ...]
    denied: tuple[str, ...]
    roles: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
    windows: tuple[WindowView, ...]
    apps: int
    fault: str = ""

    @property
    def path(self) -> str:
        return f"/settings/projects/{self.name}"


def build_project_view(manifest: Manifest, apps: Iterable[Manifest], now: datetime) -> ProjectView:
    name = str(manifest["metadata"]["name"])
    about = str(as_mapping(manifest.get("spec")).get("description") or "")
    count = sum((as_mapping(app.get("spec")).get("project") or "default") == name for app in apps)
    try:
        project = read_project(manifest, f"AppProject {name}")
    except UserError as error:
        return ProjectView(name, about, (), (), (), (), (), (), (), count, str(error))
    return _build_view(project, about, count, now)


def _build_view(project: Project, about: str, count: int, now: datetime) -> ProjectView:
    allowed_kinds = project.namespaced_allowed
    return ProjectView(
        project.name,
        about,
        project.source_repos,
        tuple((item.name or item.server or "*", item.namespace or "*") for item in project.destinations),
        tuple(map(_format_kind, project.cluster_allowed)) or ("none",),
        ("all",) if allowed_kinds is None else tuple(map(_format_kind, allowed_kinds)) or ("none",),
        tuple(map(_format_kind, (*project.cluster_denied, *project.namespaced_denied))),
        tuple((item.name, item.policies, item.groups) for item in project.roles),
        tuple(_build_window_view(item, now) for item in project.windows),
        count,
    )


def _format_kind(pattern: KindPattern) -> str:
    name_suffix = f" {pattern.name}" if pattern.name else ""
    return f"{pattern.group or 'core'}/{pattern.kind}{name_suffix}"


def _build_window_view(window: SyncWindow, now: datetime) -> WindowView:
    parts = [
        f"{word} {', '.join(names)}"
        for word, names in (
            ("applications", window.applications),
            ("namespaces", window.namespaces),
            ("clusters", window.clusters),
        )
        if names
    ]
    selection = (" and " if window.needs_all else " or ").join(parts) or "nothing"
    zone = window.time_zone or "UTC"
    try:
        is_now_active = is_active(window, now)
        next_opening = parse_calendar_schedule(window.schedule).next_time(now.astimezone(ZoneInfo(zone)))
    except (WindowError, CronError, KeyError, ValueError) as error:
        return WindowView(window.kind, window.schedule, window.duration, zone, selection, False, "", False, str(error))
    opens = format_timestamp(next_opening) if next_opening else ""
    return WindowView(
        window.kind, window.schedule, window.duration, zone, selection, is_now_active, opens, window.manual_sync
    )
