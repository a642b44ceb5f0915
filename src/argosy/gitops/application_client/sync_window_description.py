"""Describes the sync windows of an Application.

In: an Application, its project. Out: a sentence in Argo CD's words. Never: decides: `policy` does.
"""

from __future__ import annotations

from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.policy.sync_windows import evaluate_sync_windows, selects_application


def list_assigned_windows(app: Application, project: Project | None) -> list[str]:
    """argo: list the windows that match the Application, in short form."""
    windows = project.windows if project is not None else ()
    return [
        f"{window.kind}:{window.schedule}:{window.duration}" for window in windows if selects_application(window, app)
    ]


def describe_sync_windows(app: Application, project: Project | None) -> str:
    if project is None:
        return f"Unknown (project {app.project!r} not found)"
    if evaluate_sync_windows(project.windows, app, utc_now(), is_manual=False).is_allowed:
        return "Sync Allowed"
    decision = evaluate_sync_windows(project.windows, app, utc_now(), is_manual=True)
    if decision.is_allowed:
        return "Manual Allowed"
    return f"Sync Denied ({decision.reason})" if decision.reason else "Sync Denied"
