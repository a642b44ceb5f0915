"""The head of every page of an Application: status, reason and permitted actions.

In: an Application, its project, commit summaries, permissions. Out: ApplicationHeader. Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from argosy.features.applications.page_parts.addresses import TABS, of_app
from argosy.gitops.application import Application
from argosy.gitops.application.project import Project
from argosy.gitops.application_client import summary
from argosy.gitops.policy.sync_windows import WindowError, verdict
from argosy.gitops.status.hold import read_hold, told
from argosy.gitops.status.rollback import Rollback, is_rollback
from argosy.gitops.status.wire_format import mapping, mappings

CONFIRMATION = "ing confirmation of"  # deletion, pruning


@dataclass(frozen=True)
class Revision:
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
class WindowMark:
    """A sync window that blocks syncs. `is_for_all`: it blocks manual syncs, too."""

    text: str
    ends: str
    is_for_all: bool


@dataclass(frozen=True)
class Tab:
    name: str
    word: str
    url: str
    is_here: bool
    count: int = 0


@dataclass(frozen=True)
class Header:
    namespace: str
    name: str
    project: str
    base: str
    sync: str
    health: str
    why: str
    message: str
    revisions: tuple[Revision, ...]
    policy: str
    self_heals: bool
    last: LastSync | None
    hold: Mapping[str, str] | None
    window: WindowMark | None
    urls: tuple[str, ...]
    conditions: tuple[tuple[str, str, str], ...]
    destination: str
    is_busy: bool
    asks: str  # start of the deletion that waits for confirmation; empty if none does
    is_deleted: bool
    reconciled: str
    objects: int
    may: Mapping[str, bool]
    back: Rollback | None = None  # active rollback: Git has another revision
    has_error: bool = False
    deployments: int = 0
    delivered: str = ""  # the delivery engine, if it is not argosy alone


ACTIONS = ("sync", "override", "update", "delete", "logs")


def header(
    app: Application,
    project: Project | None,
    now: datetime,
    may: Mapping[str, bool],
    commits: Mapping[str, tuple[str, str, str]] | None = None,
    found: str = "",
    placed: Application | None = None,
    delay: str = "",
) -> Header:
    """`commits` has subject, author and time by revision; `drift_text` describes which fields differ.

    `resolved_app` has both name and address of its destination, since sync windows select by either.
    `delay` describes what a sync waits for.
    """
    automated = app.policy.automated
    target, hold = app.destination, read_hold(app.annotations)
    return Header(
        namespace=app.namespace,
        name=app.name,
        project=app.project,
        base=of_app(app.namespace, app.name),
        sync=summary.sync_word(app),
        health=summary.health_word(app),
        why=_why(app, found, delay),
        message=summary.health_message(app),
        revisions=_revisions(app, commits or {}),
        policy=summary.policy_word(app),
        self_heals=bool(automated and automated.is_on and automated.self_heal),
        last=_last(app),
        hold=hold._asdict() if hold is not None else None,
        window=window_mark(placed or app, project, now),
        urls=_urls(app),
        conditions=tuple(
            (str(each.get("type")), str(each.get("message")), str(each.get("lastTransitionTime") or ""))
            for each in mappings(app.status.get("conditions"))
            if hold is None or told(hold, app.name) not in str(each.get("message"))  # the hold banner shows it
        ),
        destination=f"{'this cluster' if target.is_here else target.name or target.server} / {target.namespace or '–'}",
        is_busy=summary.is_busy(app),
        asks=summary.deletes_since(app) if CONFIRMATION in summary.why(app) else "",
        is_deleted=bool(app.deleted),
        reconciled=str(app.status.get("reconciledAt") or ""),
        objects=len(mappings(app.status.get("resources"))),
        may=dict(may),
        back=summary.rolled_back(app),
        has_error=summary.has_error(app),
        deployments=summary.deployment_count(app),
    )


def _why(app: Application, found: str, delay: str) -> str:
    """Return the reason of the current status, or nothing if a banner already shows it."""
    why = summary.why(app, found, delay)
    types = {str(each.get("type")) for each in mappings(app.status.get("conditions"))}
    is_hold = why.startswith("held") and read_hold(app.annotations) is not None
    is_back = (back := summary.rolled_back(app)) is not None and why == str(back)
    return "" if is_hold or is_back or why.partition(":")[0] in types else why


def tabs(app: Application, here: str, *, has_logs: bool = True) -> tuple[Tab, ...]:
    differing = sum(1 for row in summary.rows(app) if row.status == "OutOfSync")
    counts = {"resources": len(summary.rows(app)), "diff": differing}
    return tuple(
        Tab(name, word, of_app(app.namespace, app.name, name), name == here, counts.get(name, 0))
        for name, word in TABS
        if name != "logs" or has_logs
    )


def window_mark(app: Application, project: Project | None, now: datetime) -> WindowMark | None:
    if project is None or not project.windows:
        return None
    try:
        automatic = verdict(project.windows, app, now, is_manual=False)
        manual = verdict(project.windows, app, now, is_manual=True)
    except WindowError as error:
        return WindowMark(f"invalid sync window: {error}", "", is_for_all=True)
    if automatic.is_allowed and manual.is_allowed:
        return None
    found = automatic if manual.is_allowed else manual
    ends = found.ends.isoformat() if found.ends else ""
    until = f" until {found.ends:%H:%M}" if found.ends else ""
    what = "sync blocked" if not manual.is_allowed else "automatic sync blocked"
    return WindowMark(f"{what}{until}", ends, is_for_all=not manual.is_allowed)


def _revisions(app: Application, commits: Mapping[str, tuple[str, str, str]]) -> tuple[Revision, ...]:
    known = summary.revisions(app)
    found = []
    for place, source in enumerate(app.sources):
        text = known[place] if place < len(known) else ""
        subject, author, at = commits.get(text, ("", "", ""))
        found.append(
            Revision(text, source.ref or "HEAD", subject, author, at, source.repo_url, source.path or source.chart)
        )
    return tuple(found)


def _last(app: Application) -> LastSync | None:
    state = app.state
    if state is None:
        return None
    by = "automatic" if state.request.is_automated else state.request.by
    at = state.finished or state.started
    revision = state.revision or ", ".join(state.revisions)
    is_back = is_rollback(state.request.wire)
    return LastSync(state.progress.value, state.message, at, by, revision, state.request.sync.dry_run, is_back)


def _urls(app: Application) -> tuple[str, ...]:
    """argo: URLs from Services, Ingresses and annotations; the link macro drops invalid ones."""
    found: Any = mapping(app.status.get("summary")).get("externalURLs")
    return tuple(str(each) for each in found) if isinstance(found, list) else ()
