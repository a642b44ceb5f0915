"""Sync windows: when a sync may start, and when it may continue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.gitops.application import read_application
from argosy.gitops.application.project_spec import SyncWindow
from argosy.gitops.policy.sync_windows import evaluate_sync_windows, selects_application

APP = read_application(
    {
        "metadata": {"name": "models"},
        "spec": {"destination": {"name": "in-cluster", "server": "https://here", "namespace": "prod"}},
    }
)
NIGHT = "0 22 * * *"  # for eight hours
AT_NIGHT, BY_DAY, IN_THE_EVENING = (datetime(2026, 1, 2, hour, 30, tzinfo=UTC) for hour in (23, 12, 21))


def window(kind: str, schedule: str = NIGHT, duration: str = "8h", **more: Any) -> SyncWindow:
    return SyncWindow(kind=kind, schedule=schedule, duration=duration, **{"applications": ("*",), **more})


@pytest.mark.parametrize(
    ("windows", "now", "is_manual", "expected"),
    [
        ([], BY_DAY, False, True),
        ([window("deny")], BY_DAY, False, True),
        ([window("deny")], AT_NIGHT, False, False),
        ([window("deny")], AT_NIGHT, True, False),
        ([window("deny", manual_sync=True)], AT_NIGHT, True, True),
        ([window("deny", manual_sync=True)], AT_NIGHT, False, False),
        ([window("deny", manual_sync=True), window("deny")], AT_NIGHT, True, False),
        ([window("allow")], AT_NIGHT, False, True),
        ([window("allow")], BY_DAY, False, False),
        ([window("allow", manual_sync=True)], BY_DAY, True, True),
        ([window("allow"), window("deny")], AT_NIGHT, False, False),
        ([window("allow"), window("deny", schedule="0 3 * * *", duration="1h")], AT_NIGHT, False, True),
        ([window("allow", applications=("other",))], BY_DAY, False, True),
        ([window("deny", schedule="nonsense")], BY_DAY, True, False),
        ([window("deny", time_zone="Nowhere/Land")], BY_DAY, True, False),
        ([window("deny", duration="long")], BY_DAY, False, False),
        ([window("maybe")], BY_DAY, False, False),
    ],
)
def test_windows_allow_or_deny(windows: list[SyncWindow], now: datetime, is_manual: bool, expected: bool) -> None:
    assert evaluate_sync_windows(windows, APP, now, is_manual=is_manual).is_allowed is expected


def test_sync_started_before_a_deny_window_continues_only_with_sync_overrun() -> None:
    def goes_on(**more: Any) -> bool:
        return evaluate_sync_windows(
            [window("deny", **more)], APP, AT_NIGHT, is_manual=False, started=IN_THE_EVENING
        ).is_allowed

    assert goes_on(sync_overrun=True) and not goes_on()
    began_too_late = evaluate_sync_windows(
        [window("deny", sync_overrun=True)], APP, AT_NIGHT, is_manual=False, started=AT_NIGHT
    )
    assert not began_too_late.is_allowed


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"applications": ("mod*",)}, True),
        ({"applications": ("other",), "namespaces": ("prod",)}, True),
        ({"applications": ("other",), "namespaces": ("prod",), "needs_all": True}, False),
        ({"applications": ("models",), "namespaces": ("prod",), "needs_all": True}, True),
        ({"applications": (), "clusters": ("in-cluster",)}, True),
        ({"applications": (), "clusters": ("https://here",)}, True),
        ({"applications": ()}, False),
    ],
)
def test_window_selects_applications_by_name_namespace_and_cluster(fields: dict[str, Any], expected: bool) -> None:
    assert selects_application(window("deny", **fields), APP) is expected


def test_denial_reason_contains_end_and_description_of_the_window() -> None:
    decision = evaluate_sync_windows([window("deny", description="nightly jobs")], APP, AT_NIGHT, is_manual=False)
    assert "a deny window is open until 2026-01-03 06:00 UTC" in decision.reason
    assert "nightly jobs" in decision.reason


MORNING = "0 5 * * *"  # for three hours


def make_time(day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, day, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("windows", "is_manual", "ends"),
    [
        ([window("deny")], True, make_time(3, 6)),
        ([window("deny"), window("deny", MORNING, "3h")], True, make_time(3, 8)),
        ([window("deny", MORNING, "3h"), window("deny")], True, make_time(3, 8)),
        ([window("deny"), window("deny", "0 6 * * *", "1h")], True, make_time(3, 7)),
        ([window("deny"), window("deny", "1 6 * * *", "1h")], True, make_time(3, 6)),
        ([window("deny"), window("deny", MORNING, "3h", manual_sync=True)], True, make_time(3, 6)),
        ([window("deny"), window("deny", MORNING, "3h", manual_sync=True)], False, make_time(3, 8)),
        ([window("deny", "0,30 22-23 * * *", "45m")], True, make_time(3, 0, 15)),
        ([window("deny", "*/10 20-23 * * *", "1h")], True, make_time(3, 0, 50)),
        ([window("deny"), window("allow", "0 12 * * *", "1h")], True, make_time(3, 12)),
        ([window("allow", "0 12 * * *", "1h"), window("allow", "0 9 * * *", "1h")], True, make_time(3, 9)),
        ([window("allow", "0 5 * * *", "2h"), window("deny")], True, make_time(3, 6)),
        ([window("deny", "* * * * *", "1h")], True, None),
        ([window("deny", "0 0 * * *", "24h")], True, None),
        ([window("deny"), window("allow", "0 23 * * *", "1h")], True, None),
        ([window("allow", "0 0 30 2 *", "1h")], True, None),
    ],
    ids=["one", "a later one", "a later one first", "one after the other", "a gap", "hands pass the later one",
         "nothing automatic passes it", "it opens again while it is open", "it opens often", "then no allow window",
         "the first allow window", "an allow window that opened meanwhile", "always", "day after day",
         "an allow window within it", "an allow window that never opens"],
)  # fmt: skip
def test_allowed_again_at_is_the_first_moment_when_a_sync_may_start(
    windows: list[SyncWindow], is_manual: bool, ends: datetime | None
) -> None:
    decision = evaluate_sync_windows(windows, APP, AT_NIGHT, is_manual=is_manual)
    assert not decision.is_allowed and decision.allowed_again_at == ends
    if ends is not None:
        assert evaluate_sync_windows(windows, APP, ends, is_manual=is_manual).is_allowed
        assert not evaluate_sync_windows(windows, APP, ends - timedelta(seconds=1), is_manual=is_manual).is_allowed


def test_end_of_overlapping_openings_is_the_same_at_every_moment() -> None:
    windows = [window("deny", "*/10 20-23 * * *", "1h")]
    reasons = {
        evaluate_sync_windows(windows, APP, make_time(2, 21, minute), is_manual=True).reason for minute in range(60)
    }
    assert reasons == {"a deny window is open until 2026-01-03 00:50 UTC: */10 20-23 * * * for 1h"}


@pytest.mark.parametrize(
    ("windows", "reason"),
    [
        ([window("deny", description="freeze"), window("deny", MORNING, "3h")],
         "a deny window is open until 2026-01-03 08:00 UTC: 0 22 * * * for 8h (freeze)"),
        ([window("deny"), window("deny", "0 23 * * *", "9h", description="long")],
         "a deny window is open until 2026-01-03 08:00 UTC: 0 23 * * * for 9h (long), and 1 more"),
        ([window("deny"), window("allow", "0 12 * * *", "1h")],
         "a deny window is open: 0 22 * * * for 8h; an allow window opens at 2026-01-03 12:00 UTC"),
        ([window("deny", "* * * * *", "1h")], "a deny window is open without end: * * * * * for 1h"),
        ([window("allow", "0 12 * * *", "1h"), window("allow", "0 9 * * *", "1h", description="nine")],
         "no allow window is open until 2026-01-03 09:00 UTC: 0 9 * * * for 1h (nine)"),
        ([window("allow", "0 0 30 2 *", "1h")], "no allow window is open: 0 0 30 2 * for 1h"),
    ],
)  # fmt: skip
def test_denial_reason_names_the_deciding_window(windows: list[SyncWindow], reason: str) -> None:
    assert evaluate_sync_windows(windows, APP, AT_NIGHT, is_manual=True).reason == reason


@pytest.mark.parametrize(
    "windows",
    [
        [window("deny", "* * * * *", "876000h")],
        [window("deny", "0 0 1 1 *", "219000h")],
        [window("deny", "0 0 * * *", "438000h")],
        [window("deny", "0 0 29 2 *", "2562047h", time_zone="Asia/Tokyo")],
        [window("deny", "0 0 29 2 *", "40000h")],
        [window("allow", "* * * * *", "876000h"), window("deny", "0 0 * * *", "24h")],
        [window("deny", "0 0 29 2 */7", "2500000h"), window("deny", "* * * * *", "876000h")],
    ],
)
def test_deny_window_that_always_reopens_is_open_without_end(windows: list[SyncWindow]) -> None:
    refusal = evaluate_sync_windows(windows, APP, AT_NIGHT, is_manual=True)
    assert not refusal.is_allowed and refusal.allowed_again_at is None
    assert refusal.reason.startswith("a deny window is open without end: ")


def test_end_years_away_is_reported_if_the_window_does_not_reopen_before() -> None:
    refusal = evaluate_sync_windows(
        [window("deny", "0 0 29 2 *", "30000h")], APP, datetime(2024, 3, 1, tzinfo=UTC), is_manual=True
    )
    assert refusal.allowed_again_at == datetime(2027, 8, 2, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["allow", "deny"])
@pytest.mark.parametrize("duration", ["2562048h", "99999999999999h", "9" * 400])
def test_duration_that_overflows_in_go_is_invalid_and_denies(kind: str, duration: str) -> None:
    refusal = evaluate_sync_windows([window(kind, "* * * * *", duration)], APP, AT_NIGHT, is_manual=True)
    assert not refusal.is_allowed and "invalid duration of a sync window" in refusal.reason


def test_window_keeps_its_duration_across_a_dst_change() -> None:
    """k8s: a duration counts elapsed hours; clocks in Berlin skip one in that night."""
    windows = [window("deny", time_zone="Europe/Berlin")]
    before = datetime(2026, 3, 28, 22, 0, tzinfo=UTC)  # 23:00 in Berlin
    decision = evaluate_sync_windows(windows, APP, before, is_manual=True)
    assert (
        decision.allowed_again_at == datetime(2026, 3, 29, 5, 0, tzinfo=UTC)
        and "2026-03-29 07:00 CEST" in decision.reason
    )
    assert not evaluate_sync_windows(windows, APP, datetime(2026, 3, 29, 4, 59, tzinfo=UTC), is_manual=True).is_allowed
    assert evaluate_sync_windows(windows, APP, datetime(2026, 3, 29, 5, 0, tzinfo=UTC), is_manual=True).is_allowed


def test_window_uses_its_own_time_zone() -> None:
    at = datetime(2026, 7, 1, 20, 30, tzinfo=UTC)  # 22:30 in Berlin
    assert not evaluate_sync_windows([window("deny", time_zone="Europe/Berlin")], APP, at, is_manual=False).is_allowed
    assert evaluate_sync_windows([window("deny")], APP, at, is_manual=False).is_allowed
