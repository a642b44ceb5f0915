"""View data of a project: permissions, roles and sync windows.

In: an AppProject, the time. Out: ProjectView. Never: reads the clock; enforces a rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from argosy.errors import UserError
from argosy.gitops.application.project import KindPattern, Project, SyncWindow, read_project
from argosy.gitops.policy.sync_windows import WindowError, is_active
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written
from argosy.languages.cron import CronError, parse


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


def view(manifest: Manifest, apps: Iterable[Manifest], now: datetime) -> ProjectView:
    name = str(manifest["metadata"]["name"])
    about = str(mapping(manifest.get("spec")).get("description") or "")
    count = sum((mapping(app.get("spec")).get("project") or "default") == name for app in apps)
    try:
        project = read_project(manifest, f"AppProject {name}")
    except UserError as error:
        return ProjectView(name, about, (), (), (), (), (), (), (), count, str(error))
    return _view(project, about, count, now)


def _view(project: Project, about: str, count: int, now: datetime) -> ProjectView:
    allowed = project.namespaced_allowed
    return ProjectView(
        project.name,
        about,
        project.source_repos,
        tuple((each.name or each.server or "*", each.namespace or "*") for each in project.destinations),
        tuple(map(_kind, project.cluster_allowed)) or ("none",),
        ("all",) if allowed is None else tuple(map(_kind, allowed)) or ("none",),
        tuple(map(_kind, (*project.cluster_denied, *project.namespaced_denied))),
        tuple((each.name, each.policies, each.groups) for each in project.roles),
        tuple(_window(each, now) for each in project.windows),
        count,
    )


def _kind(pattern: KindPattern) -> str:
    named = f" {pattern.name}" if pattern.name else ""
    return f"{pattern.group or 'core'}/{pattern.kind}{named}"


def _window(window: SyncWindow, now: datetime) -> WindowView:
    parts = [
        f"{word} {', '.join(names)}"
        for word, names in (
            ("applications", window.applications),
            ("namespaces", window.namespaces),
            ("clusters", window.clusters),
        )
        if names
    ]
    told = (" and " if window.needs_all else " or ").join(parts) or "nothing"
    zone = window.time_zone or "UTC"
    try:
        active = is_active(window, now)
        found = parse(window.schedule).next(now.astimezone(ZoneInfo(zone)))
    except (WindowError, CronError, KeyError, ValueError) as error:
        return WindowView(window.kind, window.schedule, window.duration, zone, told, False, "", False, str(error))
    opens = written(found) if found else ""
    return WindowView(window.kind, window.schedule, window.duration, zone, told, active, opens, window.manual_sync)
