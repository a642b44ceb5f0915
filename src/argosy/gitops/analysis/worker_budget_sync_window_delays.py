"""Finds why an Application waits: its project is over its worker-time budget, or a sync window is closed.

In: an Application, its project, exceeded budgets, a time. Out: a Delay, or None. Never: reads a cluster or a clock.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from argosy.annotations import REFRESH
from argosy.gitops.analysis.live_view import parse_timestamp
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.policy.application_delivery_engine_detection import Deliverer, DeliveryEngines
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters
from argosy.gitops.policy.sync_windows import WindowDecision, evaluate_sync_windows
from argosy.gitops.status.projects_over_worker_budget_configmap import BudgetUse
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.gitops.status.sync_hold_annotation import read_hold


class Delay(NamedTuple):
    """Why an Application waits, and what its owner can do."""

    reason: str
    fix: str

    def __str__(self) -> str:
        return f"{self.reason}; {self.fix}"


def is_refresh_or_operation_due(app: Application) -> bool:
    """True if a reconciliation is due: the first one, a refresh, or an operation that has not started."""
    has_begun = app.state is not None and not app.state.phase.is_over
    return not app.status or REFRESH in app.annotations or (app.operation is not None and not has_begun)


def is_sync_running_or_due(app: Application) -> bool:
    """True if a sync is running, or is due because the Application is OutOfSync and syncs automatically."""
    return is_syncing(app) or (_is_out_of_sync(app) and _is_automated(app) and read_hold(app.annotations) is None)


def is_syncing(app: Application) -> bool:
    return app.operation is not None or (app.state is not None and not app.state.phase.is_over)


def find_budget_delay(app: Application, use: BudgetUse | None, engines: DeliveryEngines) -> Delay | None:
    """Return the delay of an Application whose project is over its budget. `use`: None if the project is within it.

    An Application that an Argo CD delivers, or that is paused, does not wait for workers of argosy.
    """
    if use is None or not is_refresh_or_operation_due(app):
        return None
    if engines.find_deliverer(app.annotations, app.namespace) in (Deliverer.ARGOCD, Deliverer.NOBODY):
        return None
    spent = f"{use.used:.0f}s of {use.budget:g}s of worker time within {use.window:g}s"
    reason = f"waits because project {app.project!r} is over its budget ({spent}): other projects go first"
    return Delay(
        reason,
        "make its renders and health checks cheaper, or raise fairness.project.budget in ConfigMap argosy-cm",
    )


def find_blocking_window_decision(
    app: Application, project: Project, clusters: DestinationClusters, now: datetime
) -> WindowDecision | None:
    """Return the decision of the sync windows that block a sync now; None if no sync is due or it is allowed."""
    if not is_sync_running_or_due(app):
        return None
    placed, state = clusters.resolve_destination(app), app.state
    if not is_syncing(app):
        window_verdict = evaluate_sync_windows(project.windows, placed, now, is_manual=False)
    else:
        is_running = state is not None and not state.phase.is_over
        request = app.operation or (state.request if state else None)
        is_manual = request is None or not request.is_automated
        started = parse_timestamp(state.started) if state is not None and is_running else None
        window_verdict = evaluate_sync_windows(project.windows, placed, now, is_manual=is_manual, started=started)
    return None if window_verdict.is_allowed else window_verdict


def find_window_delay(
    app: Application, project: Project, clusters: DestinationClusters, now: datetime, title: str = ""
) -> Delay | None:
    """Return the delay of an Application that a sync window blocks. `title`: its name as users type it."""
    window_verdict = find_blocking_window_decision(app, project, clusters, now) if project.windows else None
    if window_verdict is None or window_verdict.window is None:
        return None
    operation_text = "its operation" if is_syncing(app) else "its automated sync"
    return Delay(
        f"{operation_text} waits for a sync window: {window_verdict.reason}",
        _describe_window_fix(app, project, clusters, now, window_verdict, title or app.name),
    )


def _describe_window_fix(
    app: Application,
    project: Project,
    clusters: DestinationClusters,
    now: datetime,
    window_verdict: WindowDecision,
    title: str,
) -> str:
    wait = "wait until then, or " if window_verdict.allowed_again_at is not None else ""
    windows = f"see the windows: argosy proj windows list {project.name}"
    if is_syncing(app):
        return f"{wait}end the operation: argosy app terminate-op {title}; {windows}"
    if evaluate_sync_windows(project.windows, clusters.resolve_destination(app), now, is_manual=True).is_allowed:
        return f"{wait}sync it by hand, which the window allows: argosy app sync {title}; {windows}"
    return f"{wait}change the window; {windows}"


def find_delay(
    app: Application,
    project: Project | None,
    clusters: DestinationClusters,
    use: BudgetUse | None,
    engines: DeliveryEngines,
    now: datetime,
    title: str = "",
) -> Delay | None:
    """Return why an Application waits now: for its project's turn or for a sync window."""
    if delay := find_budget_delay(app, use, engines):
        return delay
    return None if project is None else find_window_delay(app, project, clusters, now, title)


def _is_out_of_sync(app: Application) -> bool:
    return as_mapping(app.status.get("sync")).get("status") == "OutOfSync"


def _is_automated(app: Application) -> bool:
    automated = app.policy.automated
    return automated is not None and automated.is_on
