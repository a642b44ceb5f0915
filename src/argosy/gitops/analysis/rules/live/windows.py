"""Live rules about sync windows: Applications that wait for one, and malformed windows.

In: a live view. Out: violations. Never: reports that an Application waits if it has nothing to sync.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from argosy.gitops.analysis.live_view import LiveApplication, LiveView
from argosy.gitops.analysis.rule import build_live_rule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.analysis.worker_budget_sync_window_delays import find_window_delay
from argosy.gitops.application.project_spec import Project, SyncWindow, read_project
from argosy.gitops.policy.sync_windows import evaluate_sync_windows, find_window_fault, selects_application

MAX_NAMED_APPS: Final = 3


def _find_malformed_windows(view: LiveView) -> Iterator[Violation]:
    for project in view.projects.values():
        for index, window in enumerate(read_project(project.wire).windows if project.wire else project.windows):
            problem = find_window_fault(window, view.now)
            if not problem:
                continue
            apps = [
                app.name
                for app in _list_project_apps(view, project)
                if selects_application(window, view.clusters.resolve_destination(app.app))
            ]
            app_names = ", ".join(apps[:MAX_NAMED_APPS]) + (" and more" if len(apps) > MAX_NAMED_APPS else "")
            blocked = f"; until then {app_names} cannot sync" if apps else ""
            subject = f"AppProject/{project.name}"
            text = f"{subject}: sync window {index} is malformed: {problem.partition('; ')[0]}{blocked}"
            yield Violation(
                FileLocation(subject), text, _render_correction(project, index, window), subject, "spec.syncWindows"
            )


def _render_correction(project: Project, index: int, window: SyncWindow) -> str:
    if window.kind not in ("allow", "deny"):
        command = f"argosy proj windows delete {project.name} {index}"
        return f"delete it, and add it again with kind allow or deny: {command}"
    return f"correct it: argosy proj windows update {project.name} {index} with --schedule, --duration or --time-zone"


def _list_project_apps(view: LiveView, project: Project) -> list[LiveApplication]:
    return [app for app in view.apps if app.app.project == project.name]


def _find_apps_awaiting_window(view: LiveView) -> Iterator[Violation]:
    for project in view.projects.values():
        for app in _list_project_apps(view, project):
            if delay := find_window_delay(app.app, project, view.clusters, view.now, app.name):
                yield app.build_violation(*delay)


def find_refused_syncs(view: LiveView) -> dict[str, str]:
    """Return by `Application/name` why a manual sync is refused now, and what to do instead."""
    refusals = {}
    for project in view.projects.values():
        for app in _list_project_apps(view, project) if project.windows else ():
            decision = evaluate_sync_windows(
                project.windows, view.clusters.resolve_destination(app.app), view.now, is_manual=True
            )
            if not decision.is_allowed:
                advice = f"{decision.reason or 'a sync window denies it'}; see: argosy proj windows list {project.name}"
                refusals[f"Application/{app.name}"] = f"a sync is refused now: {advice}"
    return refusals


def replace_refused_sync_advice(violation: Violation, refusals: Mapping[str, str]) -> Violation:
    """Replace the advice to sync if a window refuses it: name the window and its end instead."""
    refusal = refusals.get(violation.location.file, "")
    if not refusal or "argosy app sync" not in violation.fix:
        return violation
    kept_advice = violation.fix.partition("argosy app sync")[0].rpartition("; ")[0]
    return violation._replace(fix=f"{kept_advice}; {refusal}" if kept_advice else refusal)


RULES: Final = (
    build_live_rule(
        "AGY521",
        Severity.ERROR,
        "A sync window is malformed",
        "Applications that the window selects cannot sync, neither automatically nor manually, until it is corrected.",
        "The schedule, the duration, the time zone or the kind of the window was parsed as the engine parses it.",
        "Correct the window: argosy proj windows update PROJECT ID, or delete it: argosy proj windows delete.",
        _find_malformed_windows,
    ),
    build_live_rule(
        "AGY522",
        Severity.WARNING,
        "An Application waits for a sync window",
        "Changes in Git are not delivered before the window ends, or before one that allows syncs opens.",
        "The Application is OutOfSync and syncs automatically, or has an operation, and the engine's evaluation of its"
        " project's windows does not let it start now.",
        "Wait until the given time, sync manually if the window allows it, or change the window.",
        _find_apps_awaiting_window,
    ),
)
