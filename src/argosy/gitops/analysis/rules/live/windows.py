"""Live rules about sync windows: Applications that wait for one, and malformed windows.

In: a live view. Out: violations. Never: reports that an Application waits if it has nothing to sync.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from argosy.gitops.analysis.delays import find_window_delay
from argosy.gitops.analysis.live_view import LiveApp, LiveView
from argosy.gitops.analysis.rule import live_rule
from argosy.gitops.analysis.violation import Place, Severity, Sight
from argosy.gitops.application.project import Project, SyncWindow, read_project
from argosy.gitops.policy.sync_windows import find_window_fault, is_for, verdict

NAMED_APPS: Final = 3


def _find_malformed(view: LiveView) -> Iterator[Sight]:
    for project in view.projects.values():
        for number, window in enumerate(read_project(project.wire).windows if project.wire else project.windows):
            fault = find_window_fault(window, view.now)
            if not fault:
                continue
            apps = [app.name for app in _apps_of(view, project) if is_for(window, view.clusters.placed(app.app))]
            named = ", ".join(apps[:NAMED_APPS]) + (" and more" if len(apps) > NAMED_APPS else "")
            blocked = f"; until then {named} cannot sync" if apps else ""
            place = f"AppProject/{project.name}"
            text = f"{place}: sync window {number} is malformed: {fault.partition('; ')[0]}{blocked}"
            yield Sight(Place(place), text, _correction(project, number, window), place, "spec.syncWindows")


def _correction(project: Project, number: int, window: SyncWindow) -> str:
    if window.kind not in ("allow", "deny"):
        command = f"argosy proj windows delete {project.name} {number}"
        return f"delete it, and add it again with kind allow or deny: {command}"
    return f"correct it: argosy proj windows update {project.name} {number} with --schedule, --duration or --time-zone"


def _apps_of(view: LiveView, project: Project) -> list[LiveApp]:
    return [app for app in view.apps if app.app.project == project.name]


def _find_waiting(view: LiveView) -> Iterator[Sight]:
    for project in view.projects.values():
        for app in _apps_of(view, project):
            if delay := find_window_delay(app.app, project, view.clusters, view.now, app.name):
                yield app.sight(*delay)


def find_refused_syncs(view: LiveView) -> dict[str, str]:
    """Return by `Application/name` why a manual sync is refused now, and what to do instead."""
    refusals = {}
    for project in view.projects.values():
        for app in _apps_of(view, project) if project.windows else ():
            found = verdict(project.windows, view.clusters.placed(app.app), view.now, is_manual=True)
            if not found.is_allowed:
                way = f"{found.reason or 'a sync window denies it'}; see: argosy proj windows list {project.name}"
                refusals[f"Application/{app.name}"] = f"a sync is refused now: {way}"
    return refusals


def name_window(sight: Sight, refusals: Mapping[str, str]) -> Sight:
    """Replace the advice to sync if a window refuses it: name the window and its end instead."""
    refusal = refusals.get(sight.place.file, "")
    if not refusal or "argosy app sync" not in sight.fix:
        return sight
    kept = sight.fix.partition("argosy app sync")[0].rpartition("; ")[0]
    return sight._replace(fix=f"{kept}; {refusal}" if kept else refusal)


RULES: Final = (
    live_rule(
        "AGY521",
        Severity.ERROR,
        "A sync window is malformed",
        "Applications that the window selects cannot sync, neither automatically nor manually, until it is corrected.",
        "The schedule, the duration, the time zone or the kind of the window was parsed as the engine parses it.",
        "Correct the window: argosy proj windows update PROJECT ID, or delete it: argosy proj windows delete.",
        _find_malformed,
    ),
    live_rule(
        "AGY522",
        Severity.WARNING,
        "An Application waits for a sync window",
        "Changes in Git are not delivered before the window ends, or before one that allows syncs opens.",
        "The Application is OutOfSync and syncs automatically, or has an operation, and the engine's evaluation of its"
        " project's windows does not let it start now.",
        "Wait until the given time, sync manually if the window allows it, or change the window.",
        _find_waiting,
    ),
)
