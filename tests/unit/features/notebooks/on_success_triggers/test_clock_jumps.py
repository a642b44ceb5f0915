"""Trigger retries and written-file detection stay correct when the clock jumps."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.features.notebooks.on_success_triggers.records import (
    MAX_RETRY_DELAY_SECONDS,
    compute_retry_delay,
    record_failed_try,
)
from argosy.features.notebooks.runner import written_file_digests
from argosy.features.notebooks.runner.written_file_digests import RunStart
from support.examples import examples

NOW = datetime(2026, 1, 10, tzinfo=UTC)


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(1, 2000), st.floats(-30 * 86400, 30 * 86400))
def test_retry_delay_stays_within_its_limit_after_clock_jumps(tries: int, jump: float) -> None:
    record: dict[str, Any] = record_failed_try({"tries": tries - 1}, "no answer", NOW)
    assert compute_retry_delay(record, NOW) > 0.5
    assert (
        0
        <= compute_retry_delay(record, NOW + timedelta(seconds=jump))
        <= min(2.0 ** min(tries - 1, 10), MAX_RETRY_DELAY_SECONDS)
    )


def test_trigger_is_retried_at_once_after_the_clock_goes_back_a_day() -> None:
    assert compute_retry_delay(record_failed_try({}, "no answer", NOW), NOW - timedelta(days=1)) == 0


@pytest.mark.parametrize("jump", [-30 * 86400.0, -3600.0, 0.0, 3600.0, 30 * 86400.0])
def test_written_files_are_found_after_clock_jumps(tmp_path: Path, jump: float) -> None:
    wall, passed = 1_800_000_000.0, 0.0
    start = RunStart(lambda: wall, lambda: passed)
    old = min(wall, wall + jump) - 60

    def write(name: str, at: float) -> None:
        (tmp_path / name).write_text(name)
        os.utime(tmp_path / name, (at, at))

    write("old", old)
    wall, passed = wall + 10, passed + 10
    write("before", wall)
    wall += jump
    wall, passed = wall + 10, passed + 10
    write("after", wall)
    written_files = written_file_digests.list_written_files([(str(tmp_path), "/data")], start.earliest_file_time())
    assert [artefact["path"] for artefact in written_files] == ["/data/after", "/data/before"]
