"""Validation of a notebook in a real kernel: its source, values, outputs, and golden notebook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from argosy.features.notebooks.runner.run_of_notebook import execute_request
from argosy.features.notebooks.runner.run_request import RunRequest

SOURCES = (
    "alpha = 0.5",
    "rate = 1e308 * 10 * 0",
    "!exit 3",
    "out = !true",
    "print('loss: 0.12345')\nprint('at 2026-01-02T03:04:05Z')",
    "# NBVAL_SKIP\nraise SystemError('never runs')",
    "# NBVAL_RAISES_EXCEPTION\n1 / 0",
    "import sys\nprint('careful', file=sys.stderr)",
    "[alpha, 3.0]",
)


def _notebook(*sources: str) -> dict[str, Any]:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]  # type: ignore[no-untyped-call]
    return nbformat.v4.new_notebook(cells=cells)  # type: ignore[no-untyped-call, no-any-return]


def _played(
    folder: Path, sources: tuple[str, ...], golden: dict[str, Any] | None = None, **order: Any
) -> dict[str, Any]:
    (folder / "n.ipynb").write_text(nbformat.writes(_notebook(*sources)))  # type: ignore[no-untyped-call]
    if golden is not None:
        (folder / "g.ipynb").write_text(nbformat.writes(golden))  # type: ignore[no-untyped-call]
        order["golden"] = str(folder / "g.ipynb")
    paths = {name: str(folder / name) for name in ("output", "results", "events")}
    code = execute_request(RunRequest(str(folder / "n.ipynb"), **paths, **order))
    results: dict[str, Any] = json.loads((folder / "results").read_text())
    assert results["exit_code"] == code
    return results


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """One run for all tests, because a kernel takes a while to start."""
    folder = tmp_path_factory.mktemp("judged")
    golden = _notebook(*SOURCES)
    out = nbformat.v4.new_output  # type: ignore[no-untyped-call]
    golden["cells"][4]["outputs"] = [out("stream", text="loss: 0.12346\nat 2020-01-01T00:00:00Z\n")]
    golden["cells"][8]["outputs"] = [out("execute_result", {"text/plain": "[0.5, 4.0]"})]
    for index in (2, 3, 6, 7):
        golden["cells"][index]["metadata"]["tags"] = ["nbval-ignore-output"]
    expected = [{"cell": 8, "type": "list", "shape": "2", "maxValue": "2"}]
    validation = {"level": "learning", "expectedOutputs": expected}
    return _played(folder, SOURCES, golden, validation=validation), folder


def test_silent_failures_are_findings_with_their_cell_index(judged: Any) -> None:
    findings = [(finding["cell"], finding["severity"], finding["category"]) for finding in judged[0]["findings"]]
    assert findings == [
        (-1, "info", "missing-assertion"),
        (1, "warning", "nan-detected"),
        (2, "warning", "failed-magic"),
        (7, "info", "stderr-output"),
        (8, "error", "out-of-range"),
    ]


def test_validation_level_decides_which_finding_fails_the_run(judged: Any) -> None:
    assert judged[0]["error"] == "cell 8: returned 3, expected at most 2"
    assert judged[0]["error_category"] == "validation_findings"


def test_validation_adds_no_cells_and_no_execution_counts(judged: Any) -> None:
    executed = json.loads((judged[1] / "output").read_text())
    assert ["".join(cell["source"]) for cell in executed["cells"]] == list(SOURCES)
    assert [cell["execution_count"] for cell in executed["cells"]] == [1, 2, 3, 4, 5, None, 6, 7, 8]


def test_nbval_markers_are_honored(judged: Any) -> None:
    statuses = [cell["status"] for cell in judged[0]["cells"]]
    assert statuses == ["succeeded"] * 5 + ["skipped"] + ["succeeded"] * 3


def test_run_is_compared_with_the_golden_notebook(judged: Any) -> None:
    comparison = judged[0]["comparison"]
    assert (comparison["result"], comparison["matchedCells"], comparison["totalCells"]) == ("failed", 8, 9)
    assert [(diff["cellIndex"], diff["severity"]) for diff in comparison["diffs"]] == [(8, "major")]


def test_finding_event_follows_the_start_of_its_cell(judged: Any) -> None:
    events = [json.loads(line) for line in (judged[1] / "events").read_text().splitlines()]
    order = [(event["event"], event.get("cell")) for event in events if event["event"] in ("finding", "begun")]
    assert order.index(("finding", 1)) == order.index(("begun", 1)) + 1


def test_blocking_source_finding_prevents_the_run(tmp_path: Path) -> None:
    results = _played(tmp_path, ("def f():\n    print(1)\nx = f()",))
    assert results["error"] == "cell 0: f() never returns a value, but its result is used here"
    assert [cell["status"] for cell in results["cells"]] == ["skipped"]
    assert results["findings"][0]["suggestion"]


def test_invalid_timestamp_pattern_is_an_error(tmp_path: Path) -> None:
    results = _played(tmp_path, ("1",), comparison={"customTimestampPatterns": ["("]})
    assert results["exit_code"] == 2
    assert results["error"].startswith("customTimestampPatterns[0]: '(' is not a regular expression")
