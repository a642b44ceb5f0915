"""Schedules are due when robfig/cron, which Argo CD uses, runs them; recorded by tools/record_cron_schedules.py."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from argosy.languages.cron import CronError, parse_schedule

RECORD: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "cron-schedules.json").read_text(encoding="utf-8")
)
ACCEPTED = [(text, times) for text, times in RECORD["schedules"] if isinstance(times, list)]
REFUSED = [text for text, error in RECORD["schedules"] if isinstance(error, str)]


def list_next_times(text: str, count: int) -> list[str]:
    schedule, moment, next_times = parse_schedule(text), datetime.fromisoformat(RECORD["after"]), list[str]()
    for _ in range(count):
        following = schedule.next_time(moment)
        if following is None:
            break
        moment = following
        next_times.append(moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    return next_times


def test_record_has_both_kinds_of_answers() -> None:
    assert len(ACCEPTED) > 700 and len(REFUSED) > 50


def test_next_times_are_those_of_robfig_cron() -> None:
    differences = {
        text: (next_times, times)
        for text, times in ACCEPTED
        if (next_times := list_next_times(text, max(len(times), 1))) != times
    }
    assert not differences


@pytest.mark.parametrize("text", REFUSED)
def test_schedule_that_robfig_cron_refuses_is_an_error(text: str) -> None:
    with pytest.raises(CronError):
        parse_schedule(text)
