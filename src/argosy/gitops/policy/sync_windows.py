"""Evaluates sync windows.

In: the windows of a project, an Application, a time. Out: whether a sync may start, and if not, why and until when.
Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from argosy.gitops.application import Application, Destination
from argosy.gitops.application.cluster_globs import matches_cluster
from argosy.gitops.application.project import SyncWindow
from argosy.gitops.application.sync_policy import seconds_of
from argosy.languages.cron import CronError, Schedule, parse
from argosy.languages.globs import matches

_MAX_OPENINGS: Final = 400  # consecutive openings of one window, before it counts as always open
_MAX_CHANGES: Final = 50  # openings and ends of all windows, before the search for the next allowed time stops
_MAX_LOOKAHEAD: Final = timedelta(days=366 * 100)  # keeps times before the year 9999
_MINUTE: Final = timedelta(minutes=1)
_MAX_DURATION_SECONDS: Final = 2562047 * 3600.0  # argo: the maximum of a Go duration, about 292 years
_HORIZON: Final = timedelta(days=366 * 5)  # overlapping openings for longer than this count as always open


@dataclass(frozen=True, slots=True)
class Verdict:
    is_allowed: bool
    reason: str = ""
    window: SyncWindow | None = None  # the window that decided
    ends: datetime | None = None  # when a sync may start again; None: now, or never


class WindowError(ValueError):
    """A window is invalid; the message says which and why."""


def verdict(
    windows: Sequence[SyncWindow],
    app: Application,
    now: datetime,
    *,
    is_manual: bool,
    started: datetime | None = None,
) -> Verdict:
    """Decide whether a sync may start now, or continue if it `started` earlier."""
    mine = [window for window in windows if is_for(window, app)]
    if not mine:
        return Verdict(True)
    try:
        blocking = _blocking(mine, now, is_manual, started)
        return _refusal(blocking, mine, now, is_manual, started) if blocking else Verdict(True)
    except WindowError as error:
        return Verdict(False, str(error))  # argo: an invalid window blocks


def _blocking(
    windows: Sequence[SyncWindow], now: datetime, is_manual: bool, started: datetime | None
) -> list[SyncWindow]:
    """Return the windows that block a sync: open deny windows, or all allow windows if none is open."""
    open_now = [window for window in windows if is_active(window, now)]
    deciding = [window for window in open_now if window.kind == "deny"]
    if not deciding and not any(window.kind == "allow" for window in open_now):
        deciding = [window for window in windows if window.kind == "allow"]
    # argo: all of them must permit a manual sync, or the overrun of a running one
    if is_manual and all(window.manual_sync for window in deciding):
        return []
    may_overrun = started is not None and all(window.sync_overrun for window in deciding)
    if may_overrun and started and not _blocking(windows, started, is_manual, None):
        return []
    return [window for window in deciding if not (is_manual and window.manual_sync)]


def _refusal(
    blocking: Sequence[SyncWindow],
    windows: Sequence[SyncWindow],
    now: datetime,
    is_manual: bool,
    started: datetime | None,
) -> Verdict:
    ends, after = _allowed_again(windows, now, is_manual, started)
    if blocking[0].kind == "deny":
        named = max(blocking, key=lambda window: _end(window, now) or datetime.max.replace(tzinfo=UTC))
        more = f", and {len(blocking) - 1} more" if len(blocking) > 1 else ""
        if ends is not None and after == "allow":
            reason = f"a deny window is open: {_named(named)}{more}; an allow window opens at {_shown(ends, named)}"
        else:
            until = f" until {_shown(ends, named)}" if ends else "" if _end(named, now) else " without end"
            reason = f"a deny window is open{until}: {_named(named)}{more}"
    else:
        opened = [window for window in blocking if ends is not None and is_active(window, ends)]
        named = opened[0] if opened else blocking[0]
        until = f" until {_shown(ends, named)}" if ends else ""
        reason = f"no allow window is open{until}: {_named(named)}"
    return Verdict(False, reason, named, ends.astimezone(_zone(named)) if ends else None)


def _allowed_again(
    windows: Sequence[SyncWindow], now: datetime, is_manual: bool, started: datetime | None
) -> tuple[datetime | None, str]:
    """Return when a sync may start, and the kind of the windows that block until then; None if unknown.

    That changes only when a window opens or ends, so these times are checked in order.
    """
    moment, kind = now, ""
    for _ in range(_MAX_CHANGES):
        blocking = _blocking(windows, moment, is_manual, started)
        if not blocking:
            return moment, kind
        kind = blocking[0].kind
        changes = [
            change
            for window in windows
            if (change := _end(window, moment) if is_active(window, moment) else _next_start(window, moment))
        ]
        if not changes or min(changes) - now > _MAX_LOOKAHEAD:
            break
        moment = min(changes)
    return None, kind


def _named(window: SyncWindow) -> str:
    """Describe a window, because Argo CD gives windows no names."""
    description = f" ({window.description})" if window.description else ""
    return f"{window.schedule} for {window.duration}{description}"


def _shown(moment: datetime, window: SyncWindow) -> str:
    return f"{moment.astimezone(_zone(window)):%Y-%m-%d %H:%M %Z}"


def is_for(window: SyncWindow, app: Application) -> bool:
    """argo: one matching selector is enough; with andOperator all selectors that are set must match."""
    place = app.destination.known
    selectors: list[tuple[tuple[str, ...], Callable[[str], bool]]] = [
        (window.applications, lambda pattern: matches(pattern, app.name)),
        (window.clusters, lambda pattern: _selects_cluster(pattern, place)),
        (window.namespaces, lambda pattern: matches(pattern, place.namespace)),
    ]
    found = [any(map(selects, patterns)) for patterns, selects in selectors if patterns]
    return bool(found) and (all(found) if window.needs_all else any(found))


def _selects_cluster(pattern: str, place: Destination) -> bool:
    at_server = bool(place.server) and matches_cluster(pattern, place.server)
    return at_server or (bool(place.name) and matches(pattern, place.name))


def find_window_fault(window: SyncWindow, now: datetime) -> str:
    """Return what is invalid in a window; empty if nothing is."""
    try:
        is_active(window, now)
    except WindowError as error:
        return str(error)
    return ""


def is_active(window: SyncWindow, now: datetime) -> bool:
    """True if the window is open. Raises WindowError."""
    return _start(window, now) is not None


def _start(window: SyncWindow, now: datetime) -> datetime | None:
    """Return when the open window opened; None if it is closed."""
    # k8s: a duration is elapsed time, even across a change of daylight saving time
    begun = _next_start(window, now - timedelta(seconds=_seconds(window)))
    return begun if begun is not None and begun <= now else None


def _next_start(window: SyncWindow, after: datetime) -> datetime | None:
    if window.kind not in ("allow", "deny"):
        raise WindowError(f"the sync window {window.schedule!r} has the kind {window.kind!r}; write allow or deny")
    return _next_opening(window.schedule, after.astimezone(_zone(window)))


def _next_opening(schedule: str, after: datetime) -> datetime | None:
    """Return the next time of a schedule, in UTC."""
    try:
        found = _parsed(schedule).next(after)
    except CronError as error:
        raise WindowError(f"invalid schedule of a sync window: {error}") from None
    return found.astimezone(UTC) if found else None


@lru_cache(maxsize=256)
def _parsed(schedule: str) -> Schedule:
    return parse(schedule)


def _end(window: SyncWindow, now: datetime) -> datetime | None:
    """Return when the open window ends; None if it is closed, or if it always opens again before its end."""
    begun = _start(window, now)
    return _end_of_run(window.schedule, _seconds(window), _zone(window), begun) if begun else None


@lru_cache(maxsize=1024)
def _end_of_run(schedule: str, seconds: float, zone: ZoneInfo, begun: datetime) -> datetime | None:
    """Return the end of a window that may open again while it is open."""
    duration = timedelta(seconds=seconds)
    latest_end = begun + duration + _HORIZON
    for _ in range(_MAX_OPENINGS):
        end = begun + duration
        if end > latest_end:
            return None
        following = _last_opening(schedule, zone, begun, end)
        if following is None:
            return end
        begun = following
    return None


def _last_opening(schedule: str, zone: ZoneInfo, begun: datetime, end: datetime) -> datetime | None:
    """Return a late opening after `start` and not after `end`; None if there is none."""
    back = _MINUTE
    while True:
        after = max(end - back, begun)
        following = _next_opening(schedule, after.astimezone(zone))
        if following is not None and following <= end:
            return following
        if after == begun:
            return None
        back *= 2


def _seconds(window: SyncWindow) -> float:
    try:
        seconds = seconds_of(window.duration)
    except ValueError as error:
        raise WindowError(f"invalid duration of a sync window: {error}") from None
    if seconds > _MAX_DURATION_SECONDS:
        text = window.duration if len(window.duration) <= 40 else f"{window.duration[:40]}…"
        raise WindowError(f"invalid duration of a sync window: {text!r} is longer than 2562047h")
    return seconds


def _zone(window: SyncWindow) -> ZoneInfo:
    try:
        return ZoneInfo(window.time_zone or "UTC")
    except (KeyError, ValueError, OSError):
        raise WindowError(f"unknown time zone of a sync window: {window.time_zone!r}") from None
