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
from argosy.gitops.application.project_spec import SyncWindow
from argosy.gitops.application.sync_policy import parse_duration
from argosy.languages.cron import CronError, CronSchedule, parse_calendar_schedule
from argosy.languages.globs import matches_glob

_MAX_OPENINGS: Final = 400  # consecutive openings of one window, before it counts as always open
_MAX_CHANGES: Final = 50  # openings and ends of all windows, before the search for the next allowed time stops
_MAX_LOOKAHEAD: Final = timedelta(days=366 * 100)  # keeps times before the year 9999
_MINUTE: Final = timedelta(minutes=1)
_MAX_DURATION_SECONDS: Final = 2562047 * 3600.0  # argo: the maximum of a Go duration, about 292 years
_MAX_OVERLAP: Final = timedelta(days=366 * 5)  # overlapping openings for longer than this count as always open


@dataclass(frozen=True, slots=True)
class WindowDecision:
    is_allowed: bool
    reason: str = ""
    window: SyncWindow | None = None  # the window that decided
    allowed_again_at: datetime | None = None  # when a sync may start again; None: now, or never


class WindowError(ValueError):
    """A window is invalid; the message says which and why."""


def evaluate_sync_windows(
    windows: Sequence[SyncWindow],
    app: Application,
    now: datetime,
    *,
    is_manual: bool,
    started: datetime | None = None,
) -> WindowDecision:
    """Decide whether a sync may start now, or continue if it `started` earlier."""
    app_windows = [window for window in windows if selects_application(window, app)]
    if not app_windows:
        return WindowDecision(True)
    try:
        blocking = _list_blocking_windows(app_windows, now, is_manual, started)
        return _build_refusal(blocking, app_windows, now, is_manual, started) if blocking else WindowDecision(True)
    except WindowError as error:
        return WindowDecision(False, str(error))  # argo: an invalid window blocks


def _list_blocking_windows(
    windows: Sequence[SyncWindow], now: datetime, is_manual: bool, started: datetime | None
) -> list[SyncWindow]:
    """Return the windows that block a sync: open deny windows, or all allow windows if none is open."""
    open_now = [window for window in windows if is_active(window, now)]
    candidates = [window for window in open_now if window.kind == "deny"]
    if not candidates and not any(window.kind == "allow" for window in open_now):
        candidates = [window for window in windows if window.kind == "allow"]
    # argo: all of them must permit a manual sync, or the overrun of a running one
    if is_manual and all(window.manual_sync for window in candidates):
        return []
    may_overrun = started is not None and all(window.sync_overrun for window in candidates)
    if may_overrun and started and not _list_blocking_windows(windows, started, is_manual, None):
        return []
    return [window for window in candidates if not (is_manual and window.manual_sync)]


def _build_refusal(
    blocking: Sequence[SyncWindow],
    windows: Sequence[SyncWindow],
    now: datetime,
    is_manual: bool,
    started: datetime | None,
) -> WindowDecision:
    ends, after = _find_allowed_time(windows, now, is_manual, started)
    if blocking[0].kind == "deny":
        named_window = max(blocking, key=lambda window: _find_end(window, now) or datetime.max.replace(tzinfo=UTC))
        more = f", and {len(blocking) - 1} more" if len(blocking) > 1 else ""
        if ends is not None and after == "allow":
            reason = (
                f"a deny window is open: {_describe_window(named_window)}{more}; an allow window opens at "
                f"{_format_time(ends, named_window)}"
            )
        else:
            until = (
                f" until {_format_time(ends, named_window)}"
                if ends
                else ""
                if _find_end(named_window, now)
                else " without end"
            )
            reason = f"a deny window is open{until}: {_describe_window(named_window)}{more}"
    else:
        opened = [window for window in blocking if ends is not None and is_active(window, ends)]
        named_window = opened[0] if opened else blocking[0]
        until = f" until {_format_time(ends, named_window)}" if ends else ""
        reason = f"no allow window is open{until}: {_describe_window(named_window)}"
    return WindowDecision(False, reason, named_window, ends.astimezone(_load_zone(named_window)) if ends else None)


def _find_allowed_time(
    windows: Sequence[SyncWindow], now: datetime, is_manual: bool, started: datetime | None
) -> tuple[datetime | None, str]:
    """Return when a sync may start, and the kind of the windows that block until then; None if unknown.

    That changes only when a window opens or ends, so these times are checked in order.
    """
    time, kind = now, ""
    for _ in range(_MAX_CHANGES):
        blocking = _list_blocking_windows(windows, time, is_manual, started)
        if not blocking:
            return time, kind
        kind = blocking[0].kind
        changes = [
            change
            for window in windows
            if (change := _find_end(window, time) if is_active(window, time) else _find_next_start(window, time))
        ]
        if not changes or min(changes) - now > _MAX_LOOKAHEAD:
            break
        time = min(changes)
    return None, kind


def _describe_window(window: SyncWindow) -> str:
    """Describe a window, because Argo CD gives windows no names."""
    description = f" ({window.description})" if window.description else ""
    return f"{window.schedule} for {window.duration}{description}"


def _format_time(time: datetime, window: SyncWindow) -> str:
    return f"{time.astimezone(_load_zone(window)):%Y-%m-%d %H:%M %Z}"


def selects_application(window: SyncWindow, app: Application) -> bool:
    """argo: one matching selector is enough; with andOperator all selectors that are set must match."""
    destination = app.destination.with_in_cluster_alias
    selectors: list[tuple[tuple[str, ...], Callable[[str], bool]]] = [
        (window.applications, lambda pattern: matches_glob(pattern, app.name)),
        (window.clusters, lambda pattern: _selects_cluster(pattern, destination)),
        (window.namespaces, lambda pattern: matches_glob(pattern, destination.namespace)),
    ]
    selector_results = [any(map(selects, patterns)) for patterns, selects in selectors if patterns]
    return bool(selector_results) and (all(selector_results) if window.needs_all else any(selector_results))


def _selects_cluster(pattern: str, destination: Destination) -> bool:
    at_server = bool(destination.server) and matches_cluster(pattern, destination.server)
    return at_server or (bool(destination.name) and matches_glob(pattern, destination.name))


def find_window_fault(window: SyncWindow, now: datetime) -> str:
    """Return what is invalid in a window; empty if nothing is."""
    try:
        is_active(window, now)
    except WindowError as error:
        return str(error)
    return ""


def is_active(window: SyncWindow, now: datetime) -> bool:
    """True if the window is open. Raises WindowError."""
    return _find_open_start(window, now) is not None


def _find_open_start(window: SyncWindow, now: datetime) -> datetime | None:
    """Return when the open window opened; None if it is closed."""
    # k8s: a duration is elapsed time, even across a change of daylight saving time
    start = _find_next_start(window, now - timedelta(seconds=_duration_seconds(window)))
    return start if start is not None and start <= now else None


def _find_next_start(window: SyncWindow, after: datetime) -> datetime | None:
    if window.kind not in ("allow", "deny"):
        raise WindowError(f"the sync window {window.schedule!r} has the kind {window.kind!r}; write allow or deny")
    return _find_next_opening(window.schedule, after.astimezone(_load_zone(window)))


def _find_next_opening(schedule: str, after: datetime) -> datetime | None:
    """Return the next time of a schedule, in UTC."""
    try:
        opening = _parse_schedule(schedule).next_time(after)
    except CronError as error:
        raise WindowError(f"invalid schedule of a sync window: {error}") from None
    return opening.astimezone(UTC) if opening else None


@lru_cache(maxsize=256)
def _parse_schedule(schedule: str) -> CronSchedule:
    return parse_calendar_schedule(schedule)


def _find_end(window: SyncWindow, now: datetime) -> datetime | None:
    """Return when the open window ends; None if it is closed, or if it always opens again before its end."""
    start = _find_open_start(window, now)
    return (
        _find_end_of_overlaps(window.schedule, _duration_seconds(window), _load_zone(window), start) if start else None
    )


@lru_cache(maxsize=1024)
def _find_end_of_overlaps(schedule: str, seconds: float, zone: ZoneInfo, start: datetime) -> datetime | None:
    """Return the end of a window that may open again while it is open."""
    duration = timedelta(seconds=seconds)
    latest_end = start + duration + _MAX_OVERLAP
    for _ in range(_MAX_OPENINGS):
        end = start + duration
        if end > latest_end:
            return None
        following = _find_late_opening(schedule, zone, start, end)
        if following is None:
            return end
        start = following
    return None


def _find_late_opening(schedule: str, zone: ZoneInfo, start: datetime, end: datetime) -> datetime | None:
    """Return a late opening after `start` and not after `end`; None if there is none."""
    lookback = _MINUTE
    while True:
        after = max(end - lookback, start)
        following = _find_next_opening(schedule, after.astimezone(zone))
        if following is not None and following <= end:
            return following
        if after == start:
            return None
        lookback *= 2


def _duration_seconds(window: SyncWindow) -> float:
    try:
        seconds = parse_duration(window.duration)
    except ValueError as error:
        raise WindowError(f"invalid duration of a sync window: {error}") from None
    if seconds > _MAX_DURATION_SECONDS:
        text = window.duration if len(window.duration) <= 40 else f"{window.duration[:40]}…"
        raise WindowError(f"invalid duration of a sync window: {text!r} is longer than 2562047h")
    return seconds


def _load_zone(window: SyncWindow) -> ZoneInfo:
    try:
        return ZoneInfo(window.time_zone or "UTC")
    except (KeyError, ValueError, OSError):
        raise WindowError(f"unknown time zone of a sync window: {window.time_zone!r}") from None
