"""The head of every page of an Application: status, reason and permitted actions.

In: an Application, its project, commit summaries, permissions. Out: ApplicationHeader. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from argosy.features.applications.page_parts.url_paths import TABS, application_path
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application_client import status_summary
from argosy.gitops.policy.sync_windows import WindowError, evaluate_sync_windows
from argosy.gitops.status.rollback_detection import ActiveRollback, is_rollback
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import describe_hold, read_hold

CONFIRMATION_PHRASE = "ing confirmation of"  # deletion, pruning


@dataclass(frozen=True)
class HeaderRevision:
    """The revision of one source: a commit or a chart version."""

    text: str
    ref: str = ""
    subject: str = ""
    author: str = ""
    at: str = ""
    repository: str = ""
    path: str = ""


@dataclass(frozen=True)
class LastSync:
    phase: str
    message: str
    at: str
    by: str
    revision: str
    is_dry_run: bool
    is_rollback: bool


@dataclass(frozen=True)
class SyncWindowNotice:
    """A sync window that blocks syncs. `is_for_all`: it blocks manual syncs, too."""

    text: str
    ends: str
    is_for_all: bool


@dataclass(frozen=True)
class ApplicationTab:
    name: str
    word: str
    url: str
    is_here: bool
    count: int = 0


@dataclass(frozen=True)
class ApplicationHeader:
    namespace: str
    name: str
    project: str
    base: str
    sync: str
    health: str
    why: str
    message: str
    revisions: tuple[HeaderRevision, ...]
    policy: str
    self_heals: bool
    last: LastSync | None
    hold: Mapping[str, str] | None
    window: SyncWindowNotice | None
    urls: tuple[str, ...]
    conditions: tuple[tuple[str, str, str], ...]
    destination: str
    is_busy: bool
    asks: str  # start of the deletion that waits for confirmation; empty if none does
    is_deleted: bool
    reconciled: str
    objects: int
    may: Mapping[str, bool]
    back: ActiveRollback | None = None  # active rollback: Git has another revision
    has_error: bool = False
    deployments: int = 0
    delivered: str = ""  # the delivery engine, if it is not argosy alone


ACTIONS = ("sync", "override", "update", "delete", "logs")


def build_header(
    app: Application,
    project: Project | None,
    now: datetime,
    may: Mapping[str, bool],
    commits: Mapping[str, tuple[str, str, str]] | None = None,
    drift_text: str = "",
    resolved_app: Application | None = None,
    delay: str = "",
) -> ApplicationHeader:
    """`commits` has subject, author and time by revision; `drift_text` describes which fields differ.

    `resolved_app` has both name and address of its destination, since sync windows select by either.
    `delay` describes what a sync waits for.
    """
    automated = app.policy.automated
    target, hold = app.destination, read_hold(app.annotations)
    return ApplicationHeader(
        namespace=app.namespace,
        name=app.name,
        project=app.project,
        base=application_path(app.namespace, app.name),
        sync=status_summary.read_sync_status(app),
        health=status_summary.read_health_status(app),
        why=_describe_reason(app, drift_text, delay),
        message=status_summary.read_health_message(app),
        revisions=_list_revisions(app, commits or {}),
        policy=status_summary.describe_sync_policy(app),
        self_heals=bool(automated and automated.is_on and automated.self_heal),
        last=_find_last_sync(app),
        hold=hold._asdict() if hold is not None else None,
        window=find_window_notice(resolved_app or app, project, now),
        urls=_list_urls(app),
        conditions=tuple(
            (str(condition.get("type")), str(condition.get("message")), str(condition.get("lastTransitionTime") or ""))
            for condition in as_mappings(app.status.get("conditions"))
            if hold is None
            or describe_hold(hold, app.name) not in str(condition.get("message"))  # the hold banner shows it
        ),
        destination=f"{'this cluster' if target.is_in_cluster else target.name or target.server} / "
        f"{target.namespace or '–'}",
        is_busy=status_summary.is_busy(app),
        asks=status_summary.read_deletion_or_operation_start(app)
        if CONFIRMATION_PHRASE in status_summary.describe_problem(app)
        else "",
        is_deleted=bool(app.deletion_timestamp),
        reconciled=str(app.status.get("reconciledAt") or ""),
        objects=len(as_mappings(app.status.get("resources"))),
        may=dict(may),
        back=status_summary.find_rollback(app),
        has_error=status_summary.has_error(app),
        deployments=status_summary.count_deployments(app),
    )


def _describe_reason(app: Application, drift_text: str, delay: str) -> str:
    """Return the reason of the current status, or nothing if a banner already shows it."""
    reason = status_summary.describe_problem(app, drift_text, delay)
    condition_types = {str(condition.get("type")) for condition in as_mappings(app.status.get("conditions"))}
    is_hold = reason.startswith("held") and read_hold(app.annotations) is not None
    is_rollback_reason = (rollback := status_summary.find_rollback(app)) is not None and reason == str(rollback)
    return "" if is_hold or is_rollback_reason or reason.partition(":")[0] in condition_types else reason


def build_tabs(app: Application, current_tab: str, *, has_logs: bool = True) -> tuple[ApplicationTab, ...]:
    differing = sum(1 for row in status_summary.list_rows(app) if row.status == "OutOfSync")
    counts = {"resources": len(status_summary.list_rows(app)), "diff": differing}
    return tuple(
        ApplicationTab(
            name, word, application_path(app.namespace, app.name, name), name == current_tab, counts.get(name, 0)
        )
        for name, word in TABS
        if name != "logs" or has_logs
    )


def find_window_notice(app: Application, project: Project | None, now: datetime) -> SyncWindowNotice | None:
    if project is None or not project.windows:
        return None
    try:
        automatic = evaluate_sync_windows(project.windows, app, now, is_manual=False)
        manual = evaluate_sync_windows(project.windows, app, now, is_manual=True)
    except WindowError as error:
        return SyncWindowNotice(f"invalid sync window: {error}", "", is_for_all=True)
    if automatic.is_allowed and manual.is_allowed:
        return None
    decision = automatic if manual.is_allowed else manual
    ends = decision.allowed_again_at.isoformat() if decision.allowed_again_at else ""
    until_text = f" until {decision.allowed_again_at:%H:%M}" if decision.allowed_again_at else ""
    subject = "sync blocked" if not manual.is_allowed else "automatic sync blocked"
    return SyncWindowNotice(f"{subject}{until_text}", ends, is_for_all=not manual.is_allowed)


def _list_revisions(app: Application, commits: Mapping[str, tuple[str, str, str]]) -> tuple[HeaderRevision, ...]:
    resolved = status_summary.read_synced_revisions(app)
    revisions = []
    for index, source in enumerate(app.sources):
        text = resolved[index] if index < len(resolved) else ""
        subject, author, at = commits.get(text, ("", "", ""))
        revisions.append(
            HeaderRevision(
                text, source.ref or "HEAD", subject, author, at, source.repo_url, source.path or source.chart
            )
        )
    return tuple(revisions)


def _find_last_sync(app: Application) -> LastSync | None:
    state = app.state
    if state is None:
        return None
    by = "automatic" if state.request.is_automated else state.request.username
    at = state.finished or state.started
    revision = state.revision or ", ".join(state.revisions)
    is_rolled_back = is_rollback(state.request.wire)
    return LastSync(state.phase.value, state.message, at, by, revision, state.request.sync.dry_run, is_rolled_back)


def _list_urls(app: Application) -> tuple[str, ...]:
    """argo: URLs from Services, Ingresses and annotations; the link macro drops invalid ones."""
    urls: Any = as_mapping(app.status.get("summary")).get("externalURLs")
    return tuple(str(url) for url in urls) if isinstance(urls, list) else ()
