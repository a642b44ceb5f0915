"""Sync windows: when an application may be synced.

In: a project's windows, an application, a moment. Out: whether, and if not why and until when. Never: a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from argosy.language.cron import CronError, parse
from argosy.language.globs import matches
from argosy.model.application import Application
from argosy.model.application.policies import seconds_of
from argosy.model.project import SyncWindow


@dataclass(frozen=True, slots=True)
class Verdict:
    is_allowed: bool
    reason: str = ""
    window: SyncWindow | None = None  # the one that decided
    ends: datetime | None = None  # when that one ends


class WindowError(ValueError):
    """A window cannot be understood; the message says which and why."""


def verdict(
    windows: Sequence[SyncWindow],
    app: Application,
    now: datetime,
    *,
    is_manual: bool,
    started: datetime | None = None,
) -> Verdict:
    """Whether a sync may begin now; or go on, where it `started` earlier."""
    mine = [window for window in windows if is_for(window, app)]
    if not mine:
        return Verdict(True)
    try:
        open_now = [window for window in mine if is_active(window, now)]
        denying = [window for window in open_now if window.kind == "deny"]
        if denying:
            return _against(denying, mine, app, now, is_manual, started)
        if any(window.kind == "allow" for window in open_now):
            return Verdict(True)
        allowing = [window for window in mine if window.kind == "allow"]
        return _against(allowing, mine, app, now, is_manual, started) if allowing else Verdict(True)
    except WindowError as error:
        return Verdict(False, str(error))  # argo: what cannot be understood forbids


def _against(
    deciding: Sequence[SyncWindow],
    windows: Sequence[SyncWindow],
    app: Application,
    now: datetime,
    is_manual: bool,
    started: datetime | None,
) -> Verdict:
    """argo: all that are in the way must let a manual sync, or one that began before, through."""
    if is_manual and all(window.manual_sync for window in deciding):
        return Verdict(True)
    may_overrun = started is not None and all(window.sync_overrun for window in deciding)
    if may_overrun and started and verdict(windows, app, started, is_manual=is_manual).is_allowed:
        return Verdict(True)
    first = deciding[0]
    word = "a deny window is open" if first.kind == "deny" else "no allow window is open"
    ends = _end(first, now) if first.kind == "deny" else None
    until = f" until {ends:%Y-%m-%d %H:%M %Z}" if ends else ""
    said = f" ({first.description})" if first.description else ""
    return Verdict(False, f"{word}{until}: {first.schedule} for {first.duration}{said}", first, ends)


def is_for(window: SyncWindow, app: Application) -> bool:
    """argo: any of the selectors that are set suffices, or with andOperator all of them are needed."""
    clusters = [each for each in (app.destination.known.name, app.destination.known.server) if each]
    found = [
        any(matches(pattern, text) for pattern in patterns for text in texts)
        for patterns, texts in (
            (window.applications, [app.name]),
            (window.clusters, clusters),
            (window.namespaces, [app.destination.namespace]),
        )
        if patterns
    ]
    return bool(found) and (all(found) if window.needs_all else any(found))


def is_active(window: SyncWindow, now: datetime) -> bool:
    """Raises WindowError."""
    return _start(window, now) is not None


def _start(window: SyncWindow, now: datetime) -> datetime | None:
    """When the window that is open now began."""
    if window.kind not in ("allow", "deny"):
        raise WindowError(f"the sync window {window.schedule!r} is neither allow nor deny but {window.kind!r}")
    here = now.astimezone(_zone(window))
    try:
        begun = parse(window.schedule).next(here - timedelta(seconds=_seconds(window)))
    except CronError as error:
        raise WindowError(f"the schedule of a sync window cannot be read: {error}") from None
    return begun if begun is not None and begun <= here else None


def _end(window: SyncWindow, now: datetime) -> datetime | None:
    begun = _start(window, now)
    return begun + timedelta(seconds=_seconds(window)) if begun else None


def _seconds(window: SyncWindow) -> float:
    try:
        return seconds_of(window.duration)
    except ValueError as error:
        raise WindowError(f"the duration of a sync window cannot be read: {error}") from None


def _zone(window: SyncWindow) -> ZoneInfo:
    try:
        return ZoneInfo(window.time_zone or "UTC")
    except (KeyError, ValueError, OSError):
        raise WindowError(f"the time zone of a sync window is not known here: {window.time_zone!r}") from None
