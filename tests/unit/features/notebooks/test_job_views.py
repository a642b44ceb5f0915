"""Notebook job views of the web UI, and sanitized display of executed notebooks."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from argosy.features.notebooks import job_views
from argosy.features.notebooks.local_executed_notebook_lookup import load_executed_notebook
from argosy.features.notebooks.sanitized_cells import find_html, list_display_cells, normalize_png_base64
from support.model_manifests import job

NOW = datetime(2026, 11, 15, 12, 0, 5, tzinfo=UTC)
PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\10\2\0\0\0\x90wS\xde\0\0\0\0IEND\xaeB`\x82"
).decode()


def test_row_counts_executed_cells() -> None:
    row = job_views.build_row(job(), NOW)
    assert (row.phase, row.done, row.total, row.seconds, row.last) == ("Succeeded", 2, 2, 2.0, 2)
    assert [cell.state for cell in row.strip] == ["waiting", "ok", "ok"]


def test_strip_of_a_running_job_shows_running_and_waiting_cells() -> None:
    running = job(phase="ValidationRunning", message="Validating notebook: 3 of 5 cells done", completionTime="")
    row = job_views.build_row(running, NOW)
    assert [cell.state for cell in row.strip][3:] == ["running", "waiting"]
    assert (row.phase, row.total, row.seconds) == ("Running", 5, 7.0)


def test_strip_marks_a_cell_with_a_warning_as_noted() -> None:
    feedback = [{"cell": 1, "severity": "warning", "category": "silent", "message": "an empty frame"}]
    assert job_views.build_cell_strip(job(educationalFeedback=feedback))[1].state == "noted"


def test_run_view_lists_only_the_triggers_of_that_run() -> None:
    view = job_views.build_run_view(job(), None, NOW)
    assert view is not None and [target.name for target in view.set_off] == ["fraud"]
    assert view.set_off[0].path == "/models/ml/fraud" and view.parameters == (("alpha", "0.5"),)


def test_view_of_an_earlier_run_has_its_failure_but_no_cells() -> None:
    view = job_views.build_run_view(job(), 1, NOW)
    assert view is not None and not view.is_last and view.cells == () and view.why == "it broke"
    assert job_views.build_run_view(job(), 7, NOW) is None


def test_golden_differences_show_expected_and_actual_values() -> None:
    compared = {"strategy": "normalized", "result": "failed", "totalCells": 3, "matchedCells": 2, "mismatchedCells": 1,
                "diffs": [{"cellIndex": 1, "expected": "7", "actual": "8", "severity": "major"}]}  # fmt: skip
    view = job_views.build_run_view(job(comparisonResult=compared), None, NOW)
    assert view is not None and (view.golden, view.compared) == ("differs", (2, 3))
    assert (view.differences[0].expected, view.differences[0].actual) == ("7", "8")


@pytest.mark.parametrize(
    "content",
    [
        "<script>alert(1)</script>",
        base64.b64encode(b"<svg onload=alert(1)>").decode(),
        base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 4).decode(),
        base64.b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\x7f\xff\xff\xff" * 2).decode(),
        None,
        7,
        {"a": 1},
    ],
)
def test_reencode_png_rejects_content_that_is_not_a_valid_png(content: object) -> None:
    assert normalize_png_base64(content) == ""


def test_cell_outputs_become_text_pictures_or_mime_type_names() -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["a\x1b[31mb\n"]},
        {"output_type": "display_data", "data": {"image/png": PIXEL, "text/plain": "<Figure>"}},
        {"output_type": "execute_result", "data": {"text/html": "<table>", "text/plain": "   x"}},
        {"output_type": "display_data", "data": {"application/javascript": "alert(1)"}},
        {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["one", "two"]},
        "nonsense",
    ]
    cell = list_display_cells({"cells": [{"cell_type": "code", "source": ["x = 1"], "outputs": outputs}, "nonsense"]})[
        0
    ]
    assert [output.kind for output in cell.outputs] == ["text", "picture", "html", "other", "error"]
    assert cell.outputs[0].text == "ab\n" and cell.outputs[3].text == "application/javascript"


@pytest.mark.parametrize("notebook", [{}, {"cells": None}, {"cells": {"a": 1}}, {"cells": [None, 7]}])
def test_malformed_notebook_has_no_cells(notebook: dict[str, object]) -> None:
    assert list_display_cells(notebook) == () and find_html(notebook, 0, 0) is None


def test_executed_notebook_is_loaded_only_from_the_folder_of_its_run(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "ml" / "train" / "12345678-1-2"
    folder.mkdir(parents=True)
    (folder / "output.ipynb").write_text(json.dumps({"cells": []}))
    assert load_executed_notebook(tmp_path, job(), 1, 2) == {"cells": []}
    assert load_executed_notebook(tmp_path, job(), 1, 3) is None and load_executed_notebook(None, job(), 1, 2) is None
    away = job()
    away["metadata"]["name"] = ".."
    assert load_executed_notebook(tmp_path, away, 1, 2) is None


def test_executed_notebook_is_not_read_through_a_symlink(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "ml" / "train" / "12345678-1-2"
    folder.mkdir(parents=True)
    (tmp_path / "other.ipynb").write_text("{}")
    (folder / "output.ipynb").symlink_to(tmp_path / "other.ipynb")
    assert load_executed_notebook(tmp_path, job(), 1, 2) is None
