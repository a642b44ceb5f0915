"""Summary of a run, cell by cell.

In: the results of a run, the executed notebook, the golden notebook. Out: one value for terminal output, reports and
JUnit. Never: validates; the runner did.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.features.notebooks.runner.cell_source_and_tags import Notebook, get_cell_type, get_source
from argosy.features.notebooks.runner.findings_that_fail_validation import SEVERITIES, THRESHOLDS
from argosy.features.notebooks.runner.golden_notebook_comparison import (
    CellDifference,
    NotebookComparison,
    compare_notebooks,
)
from argosy.features.notebooks.runner.run_request import ComparisonConfig

MAX_TITLE_CHARACTERS: Final = 40
CONTEXT_LINES: Final = 3  # lines before and after the failing one
_TRACEBACK_LINE: Final = re.compile(r"\bCell In\[(\d+)\], line (\d+)")


@dataclass(frozen=True)
class CellSummary:
    index: int
    title: str
    status: str  # succeeded, failed, skipped
    seconds: float = 0.0
    error: str = ""
    traceback: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()
    difference: CellDifference | None = None

    @property
    def is_bad(self) -> bool:
        return self.status == "failed" or self.difference is not None


@dataclass(frozen=True)
class NotebookRunSummary:
    notebook: str
    passed: bool
    error: str
    seconds: float
    level: str
    is_strict: bool
    cells: tuple[CellSummary, ...]  # code cells, and other cells that differ
    notebook_findings: tuple[Mapping[str, Any], ...]  # findings about the whole notebook
    golden: NotebookComparison | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    statistics: Mapping[str, Any] = field(default_factory=dict)

    def is_blocking(self, finding: Mapping[str, Any]) -> bool:
        threshold = "info" if self.is_strict else THRESHOLDS[self.level]
        return SEVERITIES.index(finding["severity"]) >= SEVERITIES.index(threshold)

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        return [*self.notebook_findings, *(finding for cell in self.cells for finding in cell.findings)]


def summarize(
    results: Mapping[str, Any],
    executed: Notebook,
    golden: Notebook | None,
    comparison: ComparisonConfig,
    validation: Mapping[str, Any],
) -> NotebookRunSummary:
    comparison_result = results.get("comparison") or {}
    golden_comparison = (
        compare_notebooks(executed, golden, comparison)
        if golden is not None and comparison_result.get("result") != "skipped"
        else None
    )
    differences = (
        {entry.cell: entry for entry in golden_comparison.differences if entry.kind != "missing_cell"}
        if golden_comparison
        else {}
    )
    cells = [
        _summarize_cell(cell, executed["cells"][cell["cell_index"]], results, differences)
        for cell in results["cells"]
        if cell["cell_type"] == "code" or cell["cell_index"] in differences
    ]
    return NotebookRunSummary(
        notebook=str(results["notebook_path"]),
        passed=results["status"] == "succeeded",
        error=str(results["error"]),
        seconds=float(results["execution_duration_seconds"]),
        level=str(validation.get("level") or "development"),
        is_strict=bool(validation.get("strictMode")),
        cells=tuple(cells),
        notebook_findings=tuple(
            entry for entry in results["findings"] if entry["cell"] not in {cell.index for cell in cells}
        ),
        golden=golden_comparison,
        parameters=(executed.get("metadata") or {}).get("papermill", {}).get("parameters") or {},
        remarks=tuple(results.get("remarks") or ()),
        statistics=results["statistics"],
    )


def _summarize_cell(
    result: Mapping[str, Any],
    source_cell: Mapping[str, Any],
    results: Mapping[str, Any],
    differences: dict[int, CellDifference],
) -> CellSummary:
    index = result["cell_index"]
    return CellSummary(
        index,
        build_title(source_cell),
        result["status"],
        result.get("seconds") or 0.0,
        result.get("error") or "",
        result.get("traceback") or "",
        tuple(finding for finding in results["findings"] if finding["cell"] == index),
        differences.get(index),
    )


def build_title(cell: Mapping[str, Any]) -> str:
    """First meaningful line of the cell: a comment, a heading, or code."""
    for line in get_source(cell).splitlines():
        words = line.strip().lstrip("#").strip()
        if get_cell_type(cell) == "code" and words != line.strip():
            words = words.removeprefix("%%").strip()  # cell separator of script editors
        if words and not words.startswith("NBVAL_"):
            return words if len(words) <= MAX_TITLE_CHARACTERS else words[: MAX_TITLE_CHARACTERS - 1] + "…"
    return "(empty)"


def list_failing_lines(cell: Mapping[str, Any], traceback: str) -> list[str]:
    """Source lines around the failing line, which is marked; the first lines if it is unknown."""
    lines = get_source(cell).splitlines()
    count = str(cell.get("execution_count"))
    # Ignore functions of other cells.
    line_numbers = [line for number, line in _TRACEBACK_LINE.findall(traceback) if number == count]
    failing_line = int(line_numbers[-1]) if line_numbers else 0
    first, last = (
        (max(failing_line - 1 - CONTEXT_LINES, 0), failing_line + CONTEXT_LINES)
        if 0 < failing_line <= len(lines)
        else (0, 2 * CONTEXT_LINES + 1)
    )
    return [f"{'→' if number == failing_line else ' '} {number:>3}  {line}" for number, line in enumerate(lines, 1)][
        first:last
    ]


def describe_change(difference: CellDifference) -> str:
    """The first differing line, as `old → new`."""
    expected_lines, actual_lines = difference.expected.splitlines(), difference.actual.splitlines()
    for expected_line, actual_line in zip(expected_lines, actual_lines):
        if expected_line != actual_line:
            return f"{_truncate(expected_line)} → {_truncate(actual_line)}"
    return difference.reason


def _truncate(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= MAX_TITLE_CHARACTERS else line[: MAX_TITLE_CHARACTERS - 1] + "…"
