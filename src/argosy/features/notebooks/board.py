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
from argosy.features.notebooks.cell_outputs import cut
from argosy.gitops.status.wire_format import mapping
from argosy.kube.objects import Manifest, annotation

TERMINAL: Final = ("Succeeded", "Failed")
STRIP: Final = {"Success": "ok", "Failure": "failed", "Skipped": "waiting"}
_OF: Final = re.compile(r"(\d+) of (\d+) cells")
GOLDEN: Final = {"matched": "matches", "failed": "differs", "skipped": "not compared"}


@dataclass(frozen=True)
class Square:
    """A cell in the cell strip."""

    index: int
    state: str  # ok, failed, noted, running, waiting
    time: str = ""


@dataclass(frozen=True)
class Told:
    """Stored result of a cell that ran."""

    index: int
    status: str
    time: str
    output: str
    error: str


@dataclass(frozen=True)
class Note:
    cell: int  # -1: about the whole notebook
    severity: str
    category: str
    message: str
    advice: str


@dataclass(frozen=True)
class Attempt:
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
class SetOff:
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
class Difference:
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
    strip: tuple[Square, ...]
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
    attempt: Attempt | None  # None: no run has started
    attempts: tuple[Attempt, ...]  # newest first
    is_last: bool
    why: str
    cells: tuple[Told, ...]
    notes: tuple[Note, ...]
    golden: str
    compared: tuple[int, int]  # matching cells, all cells
    differences: tuple[Difference, ...]
    parameters: tuple[tuple[str, str], ...]
    set_off: tuple[SetOff, ...]


def row(job: Manifest, now: datetime) -> JobRow:
    metadata, status = job["metadata"], mapping(job.get("status"))
    notebook = mapping(mapping(job.get("spec")).get("notebook"))
    git = mapping(notebook.get("git"))
    cells, told = strip(job), _ran(status)
    matched = _OF.search(str(status.get("message") or ""))
    attempts = status.get("attempts") or [{}]
    started, ended = str(status.get("startTime") or ""), str(status.get("completionTime") or "")
    return JobRow(
        str(metadata.get("namespace") or ""),
        str(metadata["name"]),
        phase(status),
        str(status.get("phase") or "Pending"),
        str(status.get("message") or "not started yet"),
        sum(each.status == "Success" for each in told),
        int(matched[2]) if matched and phase(status) == "Running" else len(told),
        _seconds(started, ended, now),
        started,
        ended,
        str(status.get("gitCommit") or ""),
        str(notebook.get("path") or ""),
        str(git.get("url") or ""),
        str(git.get("ref") or "main"),
        _trigger(job),
        GOLDEN.get(str(mapping(status.get("comparisonResult")).get("result") or ""), ""),
        cells,
        int(mapping(attempts[-1]).get("number") or 0),
    )


def phase(status: Mapping[str, Any]) -> str:
    word = str(status.get("phase") or "Pending")
    return word if word in (*TERMINAL, "Pending") else "Running"


def strip(job: Manifest) -> tuple[Square, ...]:
    """All known cells; while the notebook runs, also the next ones."""
    status = mapping(job.get("status"))
    noted = {each.cell for each in notes(job) if each.severity != "info"}
    found = []
    for told in _told(status):
        state = STRIP.get(told.status, "waiting")
        found.append(Square(told.index, "noted" if state == "ok" and told.index in noted else state, told.time))
    matched = _OF.search(str(status.get("message") or ""))
    if phase(status) == "Running" and matched:
        first = max((each.index for each in found), default=-1) + 1
        rest = range(first, min(int(matched[2]), first + 500))
        found += [Square(index, "running" if index == first else "waiting") for index in rest]
    return tuple(found)


def view(job: Manifest, number: int | None, now: datetime) -> RunView | None:
    """The run with that number, or the last run; None if it is not stored."""
    status, found = mapping(job.get("status")), attempts_of(job)
    shown = found[0] if found and number is None else next((each for each in found if each.number == number), None)
    if shown is None and number is not None:
        return None
    is_last = not found or shown is found[0]
    comparison = mapping(status.get("comparisonResult")) if is_last else {}
    set_off = tuple(_set_off(job, shown)) if shown else ()
    counted = (int(comparison.get("matchedCells") or 0), int(comparison.get("totalCells") or 0))
    differences = tuple(_difference(mapping(each)) for each in comparison.get("diffs") or ())
    return RunView(
        row(job, now), shown, tuple(found), is_last, _why(status) if is_last else (shown.message if shown else ""),
        tuple(_told(status)) if is_last else (), tuple(notes(job)) if is_last else (),
        GOLDEN.get(str(comparison.get("result") or ""), ""), counted, differences, _parameters(job), set_off,
    )  # fmt: skip


def attempts_of(job: Manifest) -> list[Attempt]:
    found = []
    for each in reversed(mapping(job.get("status")).get("attempts") or []):
        told = mapping(each)
        started, ended = str(told.get("startTime") or ""), str(told.get("completionTime") or "")
        files = tuple(
            (str(mapping(file).get("path")), str(mapping(file).get("digest"))) for file in told.get("artefacts") or ()
        )
        found.append(
            Attempt(
                int(told.get("number") or 0), int(told.get("generation") or 0), str(told.get("phase") or "Running"),
                str(told.get("message") or ""), str(told.get("gitCommit") or ""), started, ended,
                _seconds(started, ended), files,
            )
        )  # fmt: skip
    return found


def notes(job: Manifest) -> list[Note]:
    found = []
    for each in mapping(job.get("status")).get("educationalFeedback") or ():
        told = mapping(each)
        texts = (str(told.get(name) or "") for name in ("severity", "category", "message", "suggestion"))
        cell = told.get("cell")
        found.append(Note(cell if isinstance(cell, int) else -1, *texts))
    return found


def _told(status: Mapping[str, Any]) -> list[Told]:
    found = []
    for each in status.get("results") or ():
        told = mapping(each)
        texts = (str(told.get(name) or "") for name in ("status", "executionTime"))
        long = (cut(str(told.get(name) or "")) for name in ("output", "errorMessage"))
        found.append(Told(int(told.get("cellIndex") or 0), *texts, *long))
    return found


def _ran(status: Mapping[str, Any]) -> list[Told]:
    return [each for each in _told(status) if each.status != "Skipped"]


def _why(status: Mapping[str, Any]) -> str:
    for each in status.get("conditions") or ():
        if (each.get("type"), each.get("status")) == ("Failed", "True"):
            return cut(str(each.get("message") or ""), 2000)
    return ""


def _trigger(job: Manifest) -> str:
    status = mapping(job.get("status"))
    asked = annotation(job, RE_RUN) or ""
    if asked and asked == status.get("observedReRun"):
        return "re-run"
    generation = job["metadata"].get("generation") or 1
    return "created" if generation == 1 else f"spec changed (generation {generation})"


def _parameters(job: Manifest) -> tuple[tuple[str, str], ...]:
    given = mapping(mapping(job.get("spec")).get("parameters"))
    return tuple((str(name), cut(str(value), 500)) for name, value in sorted(given.items()))


def _set_off(job: Manifest, run: Attempt) -> list[SetOff]:
    found = []
    for each in mapping(job.get("status")).get("triggers") or ():
        told = mapping(each)
        if (told.get("generation"), told.get("attempt")) == (run.generation, run.number):
            names = ("action", "kind", "namespace", "name", "status", "message", "time")
            found.append(SetOff(*(str(told.get(name) or "") for name in names)))
    return found


def _difference(told: Mapping[str, Any]) -> Difference:
    texts = (str(told.get(name) or "") for name in ("diffType", "severity"))
    long = (cut(str(told.get(name) or ""), 8000) for name in ("expected", "actual"))
    return Difference(int(told.get("cellIndex") or 0), *texts, *long)


def _seconds(started: str, ended: str, now: datetime | None = None) -> float | None:
    try:
        begun = datetime.fromisoformat(started)
        end = datetime.fromisoformat(ended) if ended else now
    except ValueError:
        return None
    return (end - begun).total_seconds() if end else None
