"""Run request to the runner and event stream from it: both round-trip through JSON."""

from __future__ import annotations

import io
import json

import pytest

from argosy.features.notebooks.runner.event_stream import CellResult, EventWriter, RunProgress
from argosy.features.notebooks.runner.run_request import ComparisonConfig, RunRequest, RunRequestError, ValidationConfig


def test_run_request_round_trips_and_omits_defaults() -> None:
    order = RunRequest(
        "a.ipynb", parameters={"rate": 0.1, "names": ["ü"]}, comparison={"floatingPointTolerance": "1e-3"}
    )
    assert RunRequest.from_json(order.to_json()) == order
    assert set(json.loads(order.to_json())) == {"notebook", "parameters", "comparison"}


def test_comparison_and_validation_are_read_with_defaults() -> None:
    order = RunRequest.from_json(
        '{"notebook": "a.ipynb", "comparison": {"floatingPointTolerance": "0.5", "ignoreTimestamps": false},'
        ' "validation": {"level": "learning", "educationalMode": false,'
        ' "expectedOutputs": [{"cell": 2, "minValue": "-1.5", "notEmpty": true}]}}'
    )
    assert order.read_comparison() == ComparisonConfig(tolerance=0.5, ignore_timestamps=False)
    validation = order.read_validation()
    assert validation.educational
    assert (validation.expected[0].cell, validation.expected[0].min_value, validation.expected[0].max_value) == (
        2,
        -1.5,
        None,
    )
    assert ValidationConfig.from_wire({}) == ValidationConfig()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "names no notebook"),
        ('{"notebook": "a", "colour": 1}', "unknown field colour"),
        ('{"notebook": "a", "parameters": []}', "parameters has the wrong type"),
        ('{"notebook": "a", "timeout_seconds": true}', "timeout_seconds has the wrong type"),
        ('{"notebook": "a", "comparison": {"strategy": "fuzzy"}}', "choose one of: exact, normalized"),
        ('{"notebook": "a", "validation": {"expectedOutputs": [{"cell": "x"}]}}', "invalid number"),
    ],
)
def test_invalid_run_request_is_rejected(text: str, said: str) -> None:
    with pytest.raises(RunRequestError, match=said):
        RunRequest.from_json(text)


def test_event_stream_is_read_back_and_other_lines_are_kept() -> None:
    file = io.StringIO()
    events = EventWriter(file)
    events.write_started(2, 1)
    events.write_cell_started(1)
    events.write_cell_result(CellResult(1, "code", "Failure", 0.25, "x" * 5000, "ValueError", "ValueError: no"))
    events.write_finished("failed", "ValueError: no", "notebook_execution_failed")
    progress = RunProgress().add_lines([*file.getvalue().splitlines(), "Fatal Python error", "[1]"])
    assert (progress.cell_count, progress.code_cell_count, progress.current_cell) == (2, 1, 1)
    assert progress.cell_events[0]["errorName"] == "ValueError"
    assert len(progress.cell_events[0]["output"]) <= 2000
    assert progress.finished and progress.finished["category"] == "notebook_execution_failed"
    assert progress.unknown_lines == ["Fatal Python error", "[1]"]
