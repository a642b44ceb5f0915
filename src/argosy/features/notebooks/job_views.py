"""Table rows and run details of notebook jobs, read from the job status.

In: NotebookValidationJobs. Out: JobRow, RunView. Never: does I/O; shows facts that the status does not contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from argosy.annotations import RE_RUN
from argosy.features.notebooks.sanitized_cells import truncate
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest, get_annotation

TERMINAL: Final = ("Succeeded", "Failed")
CELL_STATES: Final = {"Success": "ok", "Failure": "failed", "Skipped": "waiting"}
_CELL_PROGRESS: Final = re.compile(r"(\d+) of (\d+) cells")
GOLDEN_WORDS: Final = {"matched": "matches", "failed": "differs", "skipped": "not compared"}


@dataclass(frozen=True)
class StripCell:
    """A cell in the cell strip."""

    index: int
    state: str  # ok, failed, noted, running, waiting
    time: str = ""


@dataclass(frozen=True)
class StoredCellResult:
    """Stored result of a cell that ran."""

    index: int
    status: str
    time: str
    output: str
    error: str


@dataclass(frozen=True)
class StoredFinding:
    cell: int  # -1: about the whole notebook
    severity: str
    category: str
    message: str
    advice: str


@dataclass(frozen=True)
class RunAttempt:
    number: int
    generation: int
    phase: str
    message: str
    commit: str
    started: str
    ended: str
    seconds: float | None
    artefacts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TriggeredAction:
    """An action that a run triggered."""

    action: str
    kind: str
    namespace: str
    name: str
    status: str
    message: str
    time: str

    @property
    def path(self) -> str:
        return f"/models/{self.namespace}/{self.name}" if self.kind == "InferenceService" else ""


@dataclass(frozen=True)
class StoredDifference:
    cell: int
    kind: str
    severity: str
    expected: str
    actual: str


@dataclass(frozen=True)
class JobRow:
    namespace: str
    name: str
    phase: str  # Pending, Running, Succeeded, Failed
    step: str  # the phase in the job status
    message: str
    done: int
    total: int
    seconds: float | None
    started: str
    ended: str
    commit: str
    notebook: str
    url: str
    ref: str
    trigger: str
    golden: str
    strip: tuple[StripCell, ...]
    last: int  # number of the last attempt

    @property
    def id(self) -> str:
        return f"n-{self.namespace}-{self.name}"

    @property
    def path(self) -> str:
        return f"/notebooks/{self.namespace}/{self.name}"

    @property
    def is_running(self) -> bool:
        return self.phase == "Running"


@dataclass(frozen=True)
class RunView:
    row: JobRow
    attempt: RunAttempt | None  # None: no run has started
    attempts: tuple[RunAttempt, ...]  # newest first
    is_last: bool
    why: str
    cells: tuple[StoredCellResult, ...]
    notes: tuple[StoredFinding, ...]
    golden: str
    compared: tuple[int, int]  # matching cells, all cells
    differences: tuple[StoredDifference, ...]
    parameters: tuple[tuple[str, str], ...]
    set_off: tuple[TriggeredAction, ...]


def build_row(job: Manifest, now: datetime) -> JobRow:
    metadata, status = job["metadata"], as_mapping(job.get("status"))
    notebook = as_mapping(as_mapping(job.get("spec")).get("notebook"))
    git = as_mapping(notebook.get("git"))
    cells, ran_cells = build_cell_strip(job), _list_ran_cells(status)
    progress = _CELL_PROGRESS.search(str(status.get("message") or ""))
    attempts = status.get("attempts") or [{}]
    started, ended = str(status.get("startTime") or ""), str(status.get("completionTime") or "")
    return JobRow(
        str(metadata.get("namespace") or ""),
        str(metadata["name"]),
        read_phase(status),
        str(status.get("phase") or "Pending"),
        str(status.get("message") or "not started yet"),
        sum(cell_result.status == "Success" for cell_result in ran_cells),
        int(progress[2]) if progress and read_phase(status) == "Running" else len(ran_cells),
        _compute_seconds(started, ended, now),
        started,
        ended,
        str(status.get("gitCommit") or ""),
        str(notebook.get("path") or ""),
        str(git.get("url") or ""),
        str(git.get("ref") or "main"),
        _describe_run_cause(job),
        GOLDEN_WORDS.get(str(as_mapping(status.get("comparisonResult")).get("result") or ""), ""),
        cells,
        int(as_mapping(attempts[-1]).get("number") or 0),
    )


def read_phase(status: Mapping[str, Any]) -> str:
    status_phase = str(status.get("phase") or "Pending")
    return status_phase if status_phase in (*TERMINAL, "Pending") else "Running"


def build_cell_strip(job: Manifest) -> tuple[StripCell, ...]:
    """All known cells; while the notebook runs, also the next ones."""
    status = as_mapping(job.get("status"))
    cells_with_findings = {entry.cell for entry in read_findings(job) if entry.severity != "info"}
    strip_cells = []
    for cell_result in _read_cell_results(status):
        state = CELL_STATES.get(cell_result.status, "waiting")
        strip_cells.append(
            StripCell(
                cell_result.index,
                "noted" if state == "ok" and cell_result.index in cells_with_findings else state,
                cell_result.time,
            )
        )
    progress = _CELL_PROGRESS.search(str(status.get("message") or ""))
    if read_phase(status) == "Running" and progress:
        first = max((entry.index for entry in strip_cells), default=-1) + 1
        next_indexes = range(first, min(int(progress[2]), first + 500))
        strip_cells += [StripCell(index, "running" if index == first else "waiting") for index in next_indexes]
    return tuple(strip_cells)


def build_run_view(job: Manifest, number: int | None, now: datetime) -> RunView | None:
    """The run with that number, or the last run; None if it is not stored."""
    status, attempts = as_mapping(job.get("status")), read_attempts(job)
    attempt = (
        attempts[0]
        if attempts and number is None
        else next((entry for entry in attempts if entry.number == number), None)
    )
    if attempt is None and number is not None:
        return None
    is_last = not attempts or attempt is attempts[0]
    comparison = as_mapping(status.get("comparisonResult")) if is_last else {}
    set_off = tuple(_read_triggered_actions(job, attempt)) if attempt else ()
    cell_counts = (int(comparison.get("matchedCells") or 0), int(comparison.get("totalCells") or 0))
    differences = tuple(_read_difference(as_mapping(entry)) for entry in comparison.get("diffs") or ())
    return RunView(
        build_row(job, now),
        attempt,
        tuple(attempts),
        is_last,
        _read_failure_message(status) if is_last else (attempt.message if attempt else ""),
        tuple(_read_cell_results(status)) if is_last else (),
        tuple(read_findings(job)) if is_last else (),
        GOLDEN_WORDS.get(str(comparison.get("result") or ""), ""),
        cell_counts,
        differences,
        _read_parameters(job),
        set_off,
    )


def read_attempts(job: Manifest) -> list[RunAttempt]:
    attempts = []
    for entry in reversed(as_mapping(job.get("status")).get("attempts") or []):
        fields = as_mapping(entry)
        started, ended = str(fields.get("startTime") or ""), str(fields.get("completionTime") or "")
        files = tuple(
            (str(as_mapping(file).get("path")), str(as_mapping(file).get("digest")))
            for file in fields.get("artefacts") or ()
        )
        attempts.append(
            RunAttempt(
                int(fields.get("number") or 0),
                int(fields.get("generation") or 0),
                str(fields.get("phase") or "Running"),
                str(fields.get("message") or ""),
                str(fields.get("gitCommit") or ""),
                started,
                ended,
                _compute_seconds(started, ended),
                files,
            )
        )
    return attempts


def read_findings(job: Manifest) -> list[StoredFinding]:
    findings = []
    for entry in as_mapping(job.get("status")).get("educationalFeedback") or ():
        fields = as_mapping(entry)
        texts = (str(fields.get(name) or "") for name in ("severity", "category", "message", "suggestion"))
        cell = fields.get("cell")
        findings.append(StoredFinding(cell if isinstance(cell, int) else -1, *texts))
    return findings


def _read_cell_results(status: Mapping[str, Any]) -> list[StoredCellResult]:
    results = []
    for entry in status.get("results") or ():
        fields = as_mapping(entry)
        texts = (str(fields.get(name) or "") for name in ("status", "executionTime"))
        long_texts = (truncate(str(fields.get(name) or "")) for name in ("output", "errorMessage"))
        results.append(StoredCellResult(int(fields.get("cellIndex") or 0), *texts, *long_texts))
    return results


def _list_ran_cells(status: Mapping[str, Any]) -> list[StoredCellResult]:
    return [result for result in _read_cell_results(status) if result.status != "Skipped"]


def _read_failure_message(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if (condition.get("type"), condition.get("status")) == ("Failed", "True"):
            return truncate(str(condition.get("message") or ""), 2000)
    return ""


def _describe_run_cause(job: Manifest) -> str:
    status = as_mapping(job.get("status"))
    re_run = get_annotation(job, RE_RUN) or ""
    if re_run and re_run == status.get("observedReRun"):
        return "re-run"
    generation = job["metadata"].get("generation") or 1
    return "created" if generation == 1 else f"spec changed (generation {generation})"


def _read_parameters(job: Manifest) -> tuple[tuple[str, str], ...]:
    parameters = as_mapping(as_mapping(job.get("spec")).get("parameters"))
    return tuple((str(name), truncate(str(value), 500)) for name, value in sorted(parameters.items()))


def _read_triggered_actions(job: Manifest, run: RunAttempt) -> list[TriggeredAction]:
    actions = []
    for entry in as_mapping(job.get("status")).get("triggers") or ():
        fields = as_mapping(entry)
        if (fields.get("generation"), fields.get("attempt")) == (run.generation, run.number):
            names = ("action", "kind", "namespace", "name", "status", "message", "time")
            actions.append(TriggeredAction(*(str(fields.get(name) or "") for name in names)))
    return actions


def _read_difference(fields: Mapping[str, Any]) -> StoredDifference:
    texts = (str(fields.get(name) or "") for name in ("diffType", "severity"))
    long_texts = (truncate(str(fields.get(name) or ""), 8000) for name in ("expected", "actual"))
    return StoredDifference(int(fields.get("cellIndex") or 0), *texts, *long_texts)


def _compute_seconds(started: str, ended: str, now: datetime | None = None) -> float | None:
    try:
        start = datetime.fromisoformat(started)
        end = datetime.fromisoformat(ended) if ended else now
    except ValueError:
        return None
    return (end - start).total_seconds() if end else None
