"""When a sync may begin, and when it may go on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.model.application import read_application
from argosy.model.project import SyncWindow
from argosy.policy.windows import is_for, verdict

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
def test_windows_decide(windows: list[SyncWindow], now: datetime, is_manual: bool, expected: bool) -> None:
    assert verdict(windows, APP, now, is_manual=is_manual).is_allowed is expected


def test_a_sync_that_began_in_time_may_overrun_where_the_window_says_so() -> None:
    def goes_on(**more: Any) -> bool:
        return verdict([window("deny", **more)], APP, AT_NIGHT, is_manual=False, started=IN_THE_EVENING).is_allowed

    assert goes_on(sync_overrun=True) and not goes_on()
    began_too_late = verdict([window("deny", sync_overrun=True)], APP, AT_NIGHT, is_manual=False, started=AT_NIGHT)
    assert not began_too_late.is_allowed


@pytest.mark.parametrize(
    ("given", "expected"),
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
def test_a_window_is_for_what_it_selects(given: dict[str, Any], expected: bool) -> None:
    assert is_for(window("deny", **given), APP) is expected


def test_a_refusal_names_the_window_and_its_end() -> None:
    said = verdict([window("deny", description="nightly jobs")], APP, AT_NIGHT, is_manual=False)
    assert "a deny window is open until 2026-01-03 06:00 UTC" in said.reason
    assert "nightly jobs" in said.reason


def test_a_window_follows_its_own_time_zone() -> None:
    at = datetime(2026, 7, 1, 20, 30, tzinfo=UTC)  # half past ten in the evening in Berlin
    assert not verdict([window("deny", time_zone="Europe/Berlin")], APP, at, is_manual=False).is_allowed
    assert verdict([window("deny")], APP, at, is_manual=False).is_allowed
