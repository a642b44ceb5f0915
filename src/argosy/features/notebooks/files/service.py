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
from argosy.features.notebooks.files import run_folder
from argosy.features.notebooks.files.html_report import report
from argosy.features.notebooks.files.junit import junit
from argosy.features.notebooks.files.notebook_file import dumped, read, write
from argosy.features.notebooks.files.process import Event, play
from argosy.features.notebooks.files.run_folder import Run
from argosy.features.notebooks.files.summary import Summary, summarize
from argosy.features.notebooks.runner.categories import INTERRUPTED
from argosy.features.notebooks.runner.order import Comparison, Order, OrderError, Validation


@dataclass(frozen=True)
class Request:
    notebook: Path
    parameters: Mapping[str, Any] = field(default_factory=dict)
    golden: Path | None = None
    comparison: Mapping[str, Any] = field(default_factory=dict)
    validation: Mapping[str, Any] = field(default_factory=dict)
    timeout_seconds: float = 1800.0
    cell_timeout_seconds: float = 0.0
    kernel: str = ""
    folder: Path = run_folder.FOLDER


@dataclass(frozen=True)
class Played:
    """A finished run; `results` are those of the runner."""

    run: Run
    summary: Summary
    results: Mapping[str, Any]

    @property
    def is_interrupted(self) -> bool:
        return bool(self.results.get("error_category") == INTERRUPTED)


def perform(request: Request, now: datetime, hear: Callable[[Event], None]) -> Played:
    """Raises UserError if the notebook cannot be run, and KeyboardInterrupt if no cell had run yet."""
    read(request.notebook)
    if request.golden is not None:
        read(request.golden)
    run = run_folder.begin(request.folder, request.notebook, now)
    try:
        results = _played(request, run, hear)
        _keep(run, request, results)
        return Played(run, summary_of(run), results)
    except BaseException:
        if not run.executed.exists():
            run.record.unlink(missing_ok=True)  # the run has no results
        raise


def _played(request: Request, run: Run, hear: Callable[[Event], None]) -> Mapping[str, Any]:
    order = Order(
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
        order.compares(), order.validates()
    except OrderError as error:
        raise UserError(str(error)) from None
    results: Mapping[str, Any] | None = None
    for event in play(order.dump()):
        if event["event"] == "results":
            results = event["results"]
        else:
            hear(event)
    if results is None or results["exit_code"] == 2:
        raise UserError(results["error"] if results else "the runner reported no results; run the notebook again")
    if not run.executed.exists():  # rejected before it ran
        write(run.executed, dumped(read(request.notebook)))
    return results


def _keep(run: Run, request: Request, results: Mapping[str, Any]) -> None:
    record = {
        "notebook": str(request.notebook),
        "golden": str(request.golden) if request.golden else "",
        "comparison": dict(request.comparison),
        "validation": dict(request.validation),
        "results": dict(results),
    }
    run_folder.keep(run, record)
    summary = summary_of(run)
    write(run.report, report(summary, read(run.executed)))
    write(run.junit, junit([summary]))


def summary_of(run: Run) -> Summary:
    """Summary of a saved run. Raises UserError."""
    record = run_folder.recorded(run)
    if "results" not in record:
        raise UserError("is not a record of a run; run the notebook again", where=str(run.record))
    golden = read(Path(record["golden"])) if record.get("golden") and Path(record["golden"]).exists() else None
    comparison, validation = Comparison.of(record["comparison"]), Validation.of(record["validation"])
    told = {**record["validation"], "level": validation.level}
    return summarize(record["results"], read(run.executed), golden, comparison, told)
