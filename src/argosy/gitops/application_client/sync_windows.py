"""Describes the sync windows of an Application.

In: an Application, its project. Out: a sentence in Argo CD's words. Never: decides: `policy` does.
"""

from __future__ import annotations

from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.application_client.client import clock
from argosy.gitops.policy.sync_windows import is_for, verdict


def assigned(app: Application, project: Project | None) -> list[str]:
    """argo: list the windows that match the Application, in short form."""
    windows = project.windows if project is not None else ()
    return [f"{each.kind}:{each.schedule}:{each.duration}" for each in windows if is_for(each, app)]


def window_text(app: Application, project: Project | None) -> str:
    if project is None:
        return f"Unknown (project {app.project!r} not found)"
    if verdict(project.windows, app, clock(), is_manual=False).is_allowed:
        return "Sync Allowed"
    found = verdict(project.windows, app, clock(), is_manual=True)
    if found.is_allowed:
        return "Manual Allowed"
    return f"Sync Denied ({found.reason})" if found.reason else "Sync Denied"
