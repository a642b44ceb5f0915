"""The next run time of a cron schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.languages.cron import CronError, IntervalSchedule, parse_calendar_schedule, parse_schedule


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
        ("0 0 */2 * 5", "2026-01-02T00:00", "2026-01-03T00:00"),  # `*/2` is a restriction, so either field is enough
        ("0 0 */1 * 5", "2026-01-02T00:00", "2026-01-09T00:00"),
        ("0 0 13,* * 5", "2026-01-02T00:00", "2026-01-09T00:00"),
        ("1,,2 * * * *", "2026-01-01T00:00", "2026-01-01T00:01"),
        ("@every 90m", "2026-01-01T00:00", "2026-01-01T01:30"),
        ("@every 1h0.5m1500ms", "2026-01-01T00:00", "2026-01-01T01:00:31"),
        ("@every 10ms", "2026-01-01T00:00", "2026-01-01T00:00:01"),
        ("@every -1h", "2026-01-01T00:00", "2026-01-01T00:00:01"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "2026-01-01T00:00", "2026-01-02T00:00"),
        ("TZ=America/New_York @daily", "2026-01-01T00:00", "2026-01-01T05:00"),
        ("TZ= 0 9 * * *", "2026-01-01T00:00", "2026-01-01T09:00"),
    ],
)
def test_next_time_returns_the_next_match(schedule: str, after: str, expected: str) -> None:
    assert parse_schedule(schedule).next_time(parse_time(after)) == parse_time(expected)


def test_zone_of_the_schedule_wins_over_that_of_the_time_and_the_result_keeps_it() -> None:
    after = parse_time("2026-07-01T00:00", "Europe/Berlin")
    next_run = parse_schedule("CRON_TZ=UTC 0 9 * * *").next_time(after)
    assert next_run == parse_time("2026-07-01T11:00", "Europe/Berlin") and next_run.tzinfo is after.tzinfo


@pytest.mark.parametrize("schedule", ["@every 1h", "TZ=UTC @every 1h"])
def test_interval_is_not_a_schedule_of_the_calendar(schedule: str) -> None:
    assert isinstance(parse_schedule(schedule), IntervalSchedule)
    with pytest.raises(CronError, match="unrecognized descriptor: @every 1h"):
        parse_calendar_schedule(schedule)


def test_error_names_the_field_and_has_the_reason_of_go() -> None:
    with pytest.raises(CronError) as caught:
        parse_schedule("0 0 * * MON-8")
    assert caught.value.reason == "end of range (8) above maximum (6): MON-8"
    assert str(caught.value) == f"invalid day of week 'MON-8'; {caught.value.reason}"


@pytest.mark.parametrize("schedule", ["0 0 31 2 *", ", * * * *", "0 , * * *", "0 0 , * ,", "0 0 * , *"])
def test_schedule_that_never_matches_has_no_next_time(schedule: str) -> None:
    assert parse_schedule(schedule).next_time(parse_time("2026-01-01T00:00")) is None


def test_long_interval_is_refused_before_it_is_matched() -> None:
    with pytest.raises(CronError, match="invalid duration"):
        parse_schedule("@every " + "9" * 1_000_000)


def test_hour_skipped_by_daylight_saving_time_does_not_run() -> None:
    next_run = parse_schedule("30 2 * * *").next_time(parse_time("2026-03-29T00:00", "Europe/Berlin"))
    assert next_run == parse_time("2026-03-30T02:30", "Europe/Berlin")


@pytest.mark.parametrize(
    "wrong", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 7", "5-1 * * * *",
              "*/0 * * * *", "a * * * *", "* * * foo *", "* * * * * *", "99999999999 * * * *", "1-2-3 * * * *",
              "1/2/3 * * * *", "-1 * * * *", "1- * * * *", "@Daily", "@fortnightly", "@every", "@every 1d", "@every x",
              "TZ=Nowhere/Atlantis 0 0 * * *", "TZ=../../etc/passwd 0 0 * * *", "TZ=", "CRON_TZ=UTC"]
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
