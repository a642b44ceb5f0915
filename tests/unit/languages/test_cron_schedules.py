"""The next run time of a cron schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.languages.cron import CronError, parse_schedule


def parse_time(text: str, zone: str = "UTC") -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("* * * * *", "2026-01-01T00:00", "2026-01-01T00:01"),
        ("0 22 * * *", "2026-01-01T22:00", "2026-01-02T22:00"),
        ("*/15 * * * *", "2026-01-01T00:16", "2026-01-01T00:30"),
        ("5/20 * * * *", "2026-01-01T00:06", "2026-01-01T00:25"),
        ("0 9-17 * * MON-FRI", "2026-01-02T17:00", "2026-01-05T09:00"),
        ("0 0 31 * *", "2026-02-01T00:00", "2026-03-31T00:00"),
        ("0 0 29 2 *", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 0 13 * 5", "2026-01-01T00:00", "2026-01-02T00:00"),  # either field: a Friday comes before the 13th
        ("0 0 13 * ?", "2026-01-01T00:00", "2026-01-13T00:00"),
        ("0 0 1 jan,JUL *", "2026-01-01T00:00", "2026-07-01T00:00"),
        ("@daily", "2026-12-31T12:00", "2027-01-01T00:00"),
        ("@weekly", "2026-01-01T00:00", "2026-01-04T00:00"),
    ],
)
def test_next_time_returns_the_next_match(schedule: str, after: str, expected: str) -> None:
    assert parse_schedule(schedule).next_time(parse_time(after)) == parse_time(expected)


def test_schedule_that_never_matches_has_no_next_time() -> None:
    assert parse_schedule("0 0 31 2 *").next_time(parse_time("2026-01-01T00:00")) is None


def test_hour_skipped_by_daylight_saving_time_does_not_run() -> None:
    next_run = parse_schedule("30 2 * * *").next_time(parse_time("2026-03-29T00:00", "Europe/Berlin"))
    assert next_run == parse_time("2026-03-30T02:30", "Europe/Berlin")


@pytest.mark.parametrize(
    "wrong", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "5-1 * * * *",
              "*/0 * * * *", "a * * * *", "* * * foo *", "1,,2 * * * *", "* * * * * *", "99999999999 * * * *"]
)  # fmt: skip
def test_invalid_schedule_is_rejected(wrong: str) -> None:
    with pytest.raises(CronError):
        parse_schedule(wrong)


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    start=st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1)),
)
def test_daily_schedule_runs_within_a_day(minute: int, hour: int, start: datetime) -> None:
    after = start.replace(tzinfo=UTC)
    next_run = parse_schedule(f"{minute} {hour} * * *").next_time(after)
    assert next_run is not None and (next_run.hour, next_run.minute) == (hour, minute)
    assert timedelta(0) < next_run - after <= timedelta(days=1)
