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

SHORT: Final = 2000  # characters of an output or message in the line of a cell
CellStatus = Literal["Success", "Failure", "Skipped"]


def shortened(text: str, most: int = SHORT) -> str:
    """Truncate the text and mark that it was truncated."""
    return text if len(text) <= most else text[: most - 16] + "... (truncated)"


@dataclass(frozen=True, slots=True)
class Cell:
    """Result of one cell; the index counts all cells from 0."""

    cell: int
    type: str
    status: CellStatus
    seconds: float = 0.0
    output: str = ""
    error_name: str = ""
    error_message: str = ""

    def line(self) -> dict[str, Any]:
        found: dict[str, Any] = {"event": "cell", "cell": self.cell, "type": self.type, "status": self.status}
        found |= {"seconds": round(self.seconds, 3), "output": shortened(self.output)}
        if self.status == "Failure":
            found |= {"errorName": self.error_name, "errorMessage": shortened(self.error_message)}
        return found


class Events:
    """Writes events to an open file; drops them if there is none."""

    def __init__(self, file: IO[str] | None) -> None:
        self._file = file

    def started(self, cells: int, code: int) -> None:
        self.tell({"event": "started", "cells": cells, "code": code})

    def begun(self, cell: int) -> None:
        self.tell({"event": "begun", "cell": cell})

    def cell(self, cell: Cell) -> None:
        self.tell(cell.line())

    def finished(self, status: str, error: str = "", category: str = "") -> None:
        self.tell({"event": "finished", "status": status, "error": shortened(error), "category": category})

    def tell(self, event: Mapping[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(event, ensure_ascii=True) + "\n")
            self._file.flush()


@dataclass
class Heard:
    """State of a run, built from its event lines. Lines that are not events are kept in `unknown_lines`."""

    total: int = 0
    code: int = 0
    begun: int = -1
    cells: list[dict[str, Any]] = field(default_factory=list)  # the `cell` events in order
    results: dict[str, Any] | None = None
    notebook: str | None = None
    finished: dict[str, Any] | None = None
    strange: list[str] = field(default_factory=list)

    def hear(self, lines: Iterable[str]) -> Heard:
        for line in lines:
            self._hear(line)
        return self

    def _hear(self, line: str) -> None:
        try:
            event = json.loads(line)
            name = event["event"]
        except (ValueError, TypeError, KeyError):
            self.strange = [*self.strange[-20:], line[:SHORT]] if line.strip() else self.strange
            return
        if name == "started":
            self.total, self.code = int(event["cells"]), int(event["code"])
        elif name == "begun":
            self.begun = int(event["cell"])
        elif name == "cell":
            self.cells.append(event)
        elif name == "results":
            self.results = event["results"]
        elif name == "notebook":
            self.notebook = event["text"]
        elif name == "finished":
            self.finished = event
