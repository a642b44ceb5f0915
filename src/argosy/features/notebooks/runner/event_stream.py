"""Event stream of a run: one JSON object per line, flushed at once.

In: progress of the run. Out: lines; or the state that the lines read so far describe. Never: a line longer than a
limit, except the last ones, which carry the results and the executed notebook if these have no file of their own.

    {"event": "started", "cells": 5, "code": 3}
    {"event": "begun", "cell": 1}
    {"event": "cell", "cell": 1, "type": "code", "status": "Failure", "seconds": 0.1, "output": "…",
     "errorName": "ModuleNotFoundError", "errorMessage": "ModuleNotFoundError: No module named 'x'"}
    {"event": "results", "results": {…}}      (if results go to standard output)
    {"event": "notebook", "text": "…"}        (if the executed notebook goes to standard output)
    {"event": "finished", "status": "failed", "error": "…", "category": "notebook_execution_failed"}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, Final, Literal

MAX_EVENT_TEXT_CHARACTERS: Final = 2000  # characters of an output or message in the line of a cell
CellStatus = Literal["Success", "Failure", "Skipped"]


def truncate(text: str, max_characters: int = MAX_EVENT_TEXT_CHARACTERS) -> str:
    """Truncate the text and mark that it was truncated."""
    return text if len(text) <= max_characters else text[: max_characters - 16] + "... (truncated)"


@dataclass(frozen=True, slots=True)
class CellResult:
    """Result of one cell; the index counts all cells from 0."""

    cell: int
    type: str
    status: CellStatus
    seconds: float = 0.0
    output: str = ""
    error_name: str = ""
    error_message: str = ""

    def to_event(self) -> dict[str, Any]:
        event: dict[str, Any] = {"event": "cell", "cell": self.cell, "type": self.type, "status": self.status}
        event |= {"seconds": round(self.seconds, 3), "output": truncate(self.output)}
        if self.status == "Failure":
            event |= {"errorName": self.error_name, "errorMessage": truncate(self.error_message)}
        return event


class EventWriter:
    """Writes events to an open file; drops them if there is none."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def write_started(self, cell_count: int, code_cell_count: int) -> None:
        self.write({"event": "started", "cells": cell_count, "code": code_cell_count})

    def write_cell_started(self, cell: int) -> None:
        self.write({"event": "begun", "cell": cell})

    def write_cell_result(self, cell: CellResult) -> None:
        self.write(cell.to_event())

    def write_finished(self, status: str, error: str = "", category: str = "") -> None:
        self.write({"event": "finished", "status": status, "error": truncate(error), "category": category})

    def write(self, event: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(event, ensure_ascii=True) + "\n")
            self._file.flush()


@dataclass
class RunProgress:
    """State of a run, built from its event lines. Lines that are not events are kept in `unknown_lines`."""

    cell_count: int = 0
    code_cell_count: int = 0
    current_cell: int = -1
    cell_events: list[dict[str, Any]] = field(default_factory=list)  # the `cell` events in order
    results: dict[str, Any] | None = None
    notebook: str | None = None
    finished: dict[str, Any] | None = None
    unknown_lines: list[str] = field(default_factory=list)

    def add_lines(self, lines: Iterable[str]) -> RunProgress:
        for line in lines:
            self._add_line(line)
        return self

    def _add_line(self, line: str) -> None:
        try:
            event = json.loads(line)
            name = event["event"]
        except (ValueError, TypeError, KeyError):
            self.unknown_lines = (
                [*self.unknown_lines[-20:], line[:MAX_EVENT_TEXT_CHARACTERS]] if line.strip() else self.unknown_lines
            )
            return
        if name == "started":
            self.cell_count, self.code_cell_count = int(event["cells"]), int(event["code"])
        elif name == "begun":
            self.current_cell = int(event["cell"])
        elif name == "cell":
            self.cell_events.append(event)
        elif name == "results":
            self.results = event["results"]
        elif name == "notebook":
            self.notebook = event["text"]
        elif name == "finished":
            self.finished = event
