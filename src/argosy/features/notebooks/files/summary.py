"""Summary of a run, cell by cell.

In: the results of a run, the executed notebook, the golden notebook. Out: one value for terminal output, reports and
JUnit. Never: validates; the runner did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.notebooks.runner.cells import Notebook, source_of, type_of
from argosy.features.notebooks.runner.findings import SEVERITIES, THRESHOLDS
from argosy.features.notebooks.runner.golden import Compared, Difference, compared
from argosy.features.notebooks.runner.order import Comparison

MOST_TITLE: Final = 40
AROUND: Final = 3  # lines before and after the failing one
_LINE: Final = re.compile(r"\bCell In\[(\d+)\], line (\d+)")


@dataclass(frozen=True)
class CellSummary:
    index: int
    title: str
    status: str  # succeeded, failed, skipped
    seconds: float = 0.0
    error: str = ""
    traceback: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()
    difference: Difference | None = None

    @property
    def is_bad(self) -> bool:
        return self.status == "failed" or self.difference is not None


@dataclass(frozen=True)
class Summary:
    notebook: str
    passed: bool
    error: str
    seconds: float
    level: str
    is_strict: bool
    cells: tuple[CellSummary, ...]  # code cells, and other cells that differ
    of_all: tuple[Mapping[str, Any], ...]  # findings about the whole notebook
    golden: Compared | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def blocks(self, finding: Mapping[str, Any]) -> bool:
        least = "info" if self.is_strict else THRESHOLDS[self.level]
        return SEVERITIES.index(finding["severity"]) >= SEVERITIES.index(least)

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        return [*self.of_all, *(finding for cell in self.cells for finding in cell.findings)]


def summarize(
    results: Mapping[str, Any],
    executed: Notebook,
    golden: Notebook | None,
    comparison: Comparison,
    validation: Mapping[str, Any],
) -> Summary:
    told = results.get("comparison") or {}
    found = compared(executed, golden, comparison) if golden is not None and told.get("result") != "skipped" else None
    differences = {each.cell: each for each in found.differences if each.kind != "missing_cell"} if found else {}
    cells = [
        _cell(cell, executed["cells"][cell["cell_index"]], results, differences)
        for cell in results["cells"]
        if cell["cell_type"] == "code" or cell["cell_index"] in differences
    ]
    return Summary(
        notebook=str(results["notebook_path"]),
        passed=results["status"] == "succeeded",
        error=str(results["error"]),
        seconds=float(results["execution_duration_seconds"]),
        level=str(validation.get("level") or "development"),
        is_strict=bool(validation.get("strictMode")),
        cells=tuple(cells),
        of_all=tuple(each for each in results["findings"] if each["cell"] not in {cell.index for cell in cells}),
        golden=found,
        parameters=(executed.get("metadata") or {}).get("papermill", {}).get("parameters") or {},
        remarks=tuple(results.get("remarks") or ()),
        statistics=results["statistics"],
    )


def _cell(
    told: Mapping[str, Any], written: Mapping[str, Any], results: Mapping[str, Any], differences: dict[int, Difference]
) -> CellSummary:
    index = told["cell_index"]
    return CellSummary(
        index,
        title_of(written),
        told["status"],
        told.get("seconds") or 0.0,
        told.get("error") or "",
        told.get("traceback") or "",
        tuple(each for each in results["findings"] if each["cell"] == index),
        differences.get(index),
    )


def title_of(cell: Mapping[str, Any]) -> str:
    """First meaningful line of the cell: a comment, a heading, or code."""
    for line in source_of(cell).splitlines():
        words = line.strip().lstrip("#").strip()
        if type_of(cell) == "code" and words != line.strip():
            words = words.removeprefix("%%").strip()  # cell separator of script editors
        if words and not words.startswith("NBVAL_"):
            return words if len(words) <= MOST_TITLE else words[: MOST_TITLE - 1] + "…"
    return "(empty)"


def failing_lines(cell: Mapping[str, Any], traceback: str) -> list[str]:
    """Source lines around the failing line, which is marked; the first lines if it is unknown."""
    lines = source_of(cell).splitlines()
    count = str(cell.get("execution_count"))
    found = [line for number, line in _LINE.findall(traceback) if number == count]  # ignore functions of other cells
    at = int(found[-1]) if found else 0
    first, last = (max(at - 1 - AROUND, 0), at + AROUND) if 0 < at <= len(lines) else (0, 2 * AROUND + 1)
    return [f"{'→' if number == at else ' '} {number:>3}  {line}" for number, line in enumerate(lines, 1)][first:last]


def change_of(difference: Difference) -> str:
    """The first differing line, as `old → new`."""
    was, now = difference.expected.splitlines(), difference.actual.splitlines()
    for one, other in zip(was, now):
        if one != other:
            return f"{_short(one)} → {_short(other)}"
    return difference.why


def _short(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= MOST_TITLE else line[: MOST_TITLE - 1] + "…"
