"""Sync windows when the clock jumps: each decision is independent, and the reported end is correct."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application import Application, read_application
from argosy.gitops.application.project_spec import SyncWindow
from argosy.gitops.policy import sync_windows as module
from argosy.gitops.policy.sync_windows import WindowDecision, evaluate_sync_windows
from support.examples import examples

NOON = datetime(2026, 6, 15, 12, tzinfo=UTC)
HOURS, MINUTES = st.integers(0, 23), st.integers(0, 59)
SCHEDULES = st.one_of(
    st.builds(lambda minute, hour: f"{minute} {hour} * * *", MINUTES, HOURS),
    st.builds(lambda minute, day: f"{minute} 3 * * {day}", MINUTES, st.integers(0, 6)),
    st.sampled_from(["* * * * *", "0 0 1 * *", "0 0 29 2 *", "*/7 * * * *"]),
)
WINDOWS = st.builds(
    SyncWindow,
    kind=st.sampled_from(["allow", "deny"]),
    schedule=SCHEDULES,
    duration=st.sampled_from(["1m", "2h", "20h"]),
    applications=st.just(("*",)),
    manual_sync=st.booleans(),
    sync_overrun=st.booleans(),
    time_zone=st.sampled_from(["", "Europe/Berlin", "America/St_Johns"]),
)
# Includes the Unix epoch, at which machines without a clock battery start.
JUMPS = st.one_of(
    st.integers(-48, 48).map(lambda hours: timedelta(hours=hours)),
    st.integers(-400, 400).map(lambda days: timedelta(days=days)),
    st.just(datetime(1970, 1, 1, tzinfo=UTC) - NOON),
    st.just(datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC) - NOON),
)


def application() -> Application:
    source = {"repoURL": "https://git.example/x", "path": "p"}
    return read_application({"metadata": {"name": "models"}, "spec": {"source": source}})


APP = application()


def forget() -> None:
    for name in ("_parse_schedule", "_find_end_of_overlaps"):
        getattr(module, name).cache_clear()


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(WINDOWS, min_size=1, max_size=2), st.lists(JUMPS, min_size=1, max_size=3), st.booleans())
def test_decision_does_not_depend_on_earlier_evaluations(
    windows: list[SyncWindow], jumps: list[timedelta], is_manual: bool
) -> None:
    """Evaluations before a jump change nothing, also if the sync started at a time that is now in the future."""
    forget()
    judged: list[tuple[datetime, WindowDecision]] = []
    for jump in jumps:
        now = NOON + jump
        judged.append((now, evaluate_sync_windows(windows, APP, now, is_manual=is_manual, started=NOON)))
    forget()
    for now, decision in reversed(judged):
        assert evaluate_sync_windows(windows, APP, now, is_manual=is_manual, started=NOON) == decision


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(WINDOWS, min_size=1, max_size=3), JUMPS, st.booleans())
def test_sync_is_allowed_at_the_reported_end_of_a_denial(
    windows: list[SyncWindow], jump: timedelta, is_manual: bool
) -> None:
    now = NOON + jump
    decision = evaluate_sync_windows(windows, APP, now, is_manual=is_manual)
    if decision.allowed_again_at is not None:
        assert decision.allowed_again_at > now
        assert evaluate_sync_windows(windows, APP, decision.allowed_again_at, is_manual=is_manual).is_allowed
