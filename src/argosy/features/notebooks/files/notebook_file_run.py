"""Runs a notebook file, from the request to the saved files.

In: a request. Out: events while it runs, then a summary; the executed notebook, a report, a JUnit file, a record.
Never: writes to the notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from argosy.errors import UserError
from argosy.features.notebooks.files import run_records
from argosy.features.notebooks.files.html_report import render_report
from argosy.features.notebooks.files.junit import render_junit
from argosy.features.notebooks.files.notebook_file import dump_notebook, load_notebook, write_atomically
from argosy.features.notebooks.files.per_cell_run_summary import NotebookRunSummary, summarize
from argosy.features.notebooks.files.run_records import RunFiles
from argosy.features.notebooks.files.runner_process import RunnerEvent, run_in_subprocess
from argosy.features.notebooks.runner.failure_category_names import INTERRUPTED
from argosy.features.notebooks.runner.run_request import ComparisonConfig, RunRequest, RunRequestError, ValidationConfig


@dataclass(frozen=True)
class NotebookRunRequest:
    notebook: Path
    parameters: Mapping[str, Any] = field(default_factory=dict)
    golden: Path | None = None
    comparison: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = 1800.0
    cell_timeout_seconds: float = 0.0
    kernel: str = ""
    folder: Path = run_records.DEFAULT_FOLDER


@dataclass(frozen=True)
class FinishedRun:
    """A finished run; `results` are those of the runner."""

    run: RunFiles
    summary: NotebookRunSummary
    results: Mapping[str, Any]

    @property
    def is_interrupted(self) -> bool:
        return bool(self.results.get("error_category") == INTERRUPTED)


def run_notebook(request: NotebookRunRequest, now: datetime, on_event: Callable[[RunnerEvent], None]) -> FinishedRun:
    """Raises UserError if the notebook cannot be run, and KeyboardInterrupt if no cell had run yet."""
    load_notebook(request.notebook)
    if request.golden is not None:
        load_notebook(request.golden)
    run = run_records.create_run(request.folder, request.notebook, now)
    try:
        results = _run_request(request, run, on_event)
        _save_run(run, request, results)
        return FinishedRun(run, load_summary(run), results)
    except BaseException:
        if not run.executed.exists():
            run.record.unlink(missing_ok=True)  # the run has no results
        raise


def _run_request(
    request: NotebookRunRequest, run: RunFiles, on_event: Callable[[RunnerEvent], None]
) -> Mapping[str, Any]:
    runner_request = RunRequest(
        str(request.notebook.absolute()),
        output=str(run.executed.absolute()),
        results="-",
        events="-",
        named=str(request.notebook),
        parameters=request.parameters,
        timeout_seconds=request.timeout_seconds,
        cell_timeout_seconds=request.cell_timeout_seconds,
        kernel=request.kernel,
        golden=str(request.golden.absolute()) if request.golden else "",
        comparison=request.comparison,
        validation=request.validation,
        keep_interrupted=True,
    )
    try:
        runner_request.read_comparison(), runner_request.read_validation()
    except RunRequestError as error:
        raise UserError(str(error)) from None
    results: Mapping[str, Any] | None = None
    for event in run_in_subprocess(runner_request.to_json()):
        if event["event"] == "results":
            results = event["results"]
        else:
            on_event(event)
    if results is None or results["exit_code"] == 2:
        raise UserError(results["error"] if results else "the runner reported no results; run the notebook again")
    if not run.executed.exists():  # rejected before it ran
        write_atomically(run.executed, dump_notebook(load_notebook(request.notebook)))
    return results


def _save_run(run: RunFiles, request: NotebookRunRequest, results: Mapping[str, Any]) -> None:
    record = {
        "notebook": str(request.notebook),
        "golden": str(request.golden) if request.golden else "",
        "comparison": dict(request.comparison),
        "validation": dict(request.validation),
        "results": dict(results),
    }
    run_records.save_record(run, record)
    summary = load_summary(run)
    write_atomically(run.report, render_report(summary, load_notebook(run.executed)))
    write_atomically(run.junit, render_junit([summary]))


def load_summary(run: RunFiles) -> NotebookRunSummary:
    """Summary of a saved run. Raises UserError."""
    record = run_records.load_record(run)
    if "results" not in record:
        raise UserError("is not a record of a run; run the notebook again", where=str(run.record))
    golden = load_notebook(Path(record["golden"])) if record.get("golden") and Path(record["golden"]).exists() else None
    comparison, validation = (
        ComparisonConfig.from_wire(record["comparison"]),
        ValidationConfig.from_wire(record["validation"]),
    )
    validation_fields = {**record["validation"], "level": validation.level}
    return summarize(record["results"], load_notebook(run.executed), golden, comparison, validation_fields)
