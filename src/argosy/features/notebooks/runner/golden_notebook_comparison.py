"""Compares an executed notebook with its golden notebook.

In: two notebooks as plain data, and comparison settings. Out: the content of `status.comparisonResult`. Never: compares
the source of a code cell (only outputs count); counts a cell that its author excluded as different.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, Literal

from argosy.features.notebooks.runner.cell_source_and_tags import (
    IGNORE,
    INJECTED,
    SKIP,
    Cell,
    Notebook,
    enumerate_cells,
    get_cell_type,
    get_source,
    list_outputs,
    read_marks,
    read_tags,
)
from argosy.features.notebooks.runner.output_comparison import (
    ComparableOutput,
    OutputComparison,
    compare_outputs,
    list_comparable_outputs,
)
from argosy.features.notebooks.runner.run_request import ComparisonConfig
from argosy.features.notebooks.runner.tolerant_text_comparison import Match, Normalizer

MAX_TEXT_CHARACTERS, MAX_DIFF_CHARACTERS, TRUNCATION_MARK = 500, 1000, "... (truncated)"
MAX_DIFFS: Final = 100  # limit of the job status; all of them are counted
MAX_DIFFED_CHARACTERS: Final = 20_000  # characters read for a line diff
MAX_ALIGNED_CELLS: Final = 2_000  # cells
Severity = Literal["minor", "major", "critical"]
IndexedCell = tuple[int, Cell]


@dataclass(frozen=True)
class CellDifference:
    """A cell that differs; index in the executed notebook, or in the golden one if the cell is missing."""

    cell: int
    cell_type: str
    kind: str  # output_mismatch, execution_error, missing_cell, extra_cell
    severity: Severity
    expected: str
    actual: str
    reason: str

    def to_wire(self) -> dict[str, Any]:
        fields = {"cellIndex": self.cell, "cellType": self.cell_type, "diffType": self.kind, "severity": self.severity}
        fields |= {
            "expected": truncate(self.expected, MAX_TEXT_CHARACTERS),
            "actual": truncate(self.actual, MAX_TEXT_CHARACTERS),
        }
        return {**fields, "diff": truncate(self._build_diff(), MAX_DIFF_CHARACTERS)}

    def _build_diff(self) -> str:
        expected_lines, actual_lines = (
            text[:MAX_DIFFED_CHARACTERS].splitlines() for text in (self.expected, self.actual)
        )
        return "\n".join(
            [self.reason, *difflib.unified_diff(expected_lines, actual_lines, "golden", "executed", n=1, lineterm="")]
        )


@dataclass(frozen=True)
class NotebookComparison:
    strategy: str
    total: int
    matched_within_tolerance: int  # cells that match within the tolerance
    excluded: int  # cells that their author excluded
    differences: tuple[CellDifference, ...]
    note: str = ""

    @property
    def matched(self) -> int:
        return self.total - len(self.differences)

    def to_wire(self) -> dict[str, Any]:
        """The content of `status.comparisonResult`."""
        return {
            "strategy": self.strategy,
            "result": "failed" if self.differences else "matched",
            "totalCells": self.total,
            "matchedCells": self.matched,
            "mismatchedCells": len(self.differences),
            "diffs": [difference.to_wire() for difference in self.differences[:MAX_DIFFS]],
        }


def compare_to_wire(executed: Notebook, golden: Notebook, settings: ComparisonConfig) -> dict[str, Any]:
    """Raises ValueError if a timestamp pattern is not a regular expression."""
    return compare_notebooks(executed, golden, settings).to_wire()


def describe_mismatch(result: dict[str, Any]) -> str:
    counts = f"{result['matchedCells']}/{result['totalCells']}"
    return f"golden notebook comparison failed ({counts} cells matched)"


def build_normalizer(settings: ComparisonConfig) -> Normalizer:
    """Raises ValueError if a timestamp pattern is not a regular expression."""
    return Normalizer.create(
        exact=settings.strategy == "exact",
        tolerance=settings.tolerance,
        hide_times=settings.ignore_timestamps,
        patterns=settings.timestamp_patterns,
    )


def compare_notebooks(executed: Notebook, golden: Notebook, settings: ComparisonConfig) -> NotebookComparison:
    text_normalizer = build_normalizer(settings)
    cell_count = near_count = excluded_count = 0
    differences = []
    for golden_cell, executed_cell in _pair_cells(_list_comparable_cells(golden), _list_comparable_cells(executed)):
        cell_count += 1
        if _is_excluded(golden_cell, executed_cell):
            excluded_count += 1
            continue
        difference = _compare_cell(golden_cell, executed_cell, text_normalizer, settings)
        if isinstance(difference, CellDifference):
            differences.append(difference)
        near_count += difference is Match.WITHIN_TOLERANCE
    return NotebookComparison(
        settings.strategy,
        cell_count,
        near_count,
        excluded_count,
        tuple(differences),
        _describe_empty_golden(golden, executed),
    )


def _list_comparable_cells(notebook: Notebook) -> list[IndexedCell]:
    """Cells to compare. Raw cells have no output, and injected parameters belong to one run only."""
    indexed_cells = [
        (index, cell) for index, cell in enumerate_cells(notebook) if get_cell_type(cell) in ("code", "markdown")
    ]
    return [(index, cell) for index, cell in indexed_cells if INJECTED not in read_tags(cell)]


def _describe_empty_golden(golden: Notebook, executed: Notebook) -> str:
    def has_outputs(notebook: Notebook) -> bool:
        return any(list_outputs(cell) for _, cell in enumerate_cells(notebook))

    if has_outputs(executed) and not has_outputs(golden):
        return "the golden notebook has no outputs; save it with outputs, or accept the outputs of this run"
    return ""


def _pair_cells(
    golden: list[IndexedCell], executed: list[IndexedCell]
) -> Iterator[tuple[IndexedCell | None, IndexedCell | None]]:
    """Pair cells by content, so that an inserted or removed cell does not shift the others."""
    if max(len(golden), len(executed)) > MAX_ALIGNED_CELLS:
        yield from zip_longest(golden, executed)
        return
    golden_ids, executed_ids = (
        [_get_identity(cell) for _, cell in golden],
        [_get_identity(cell) for _, cell in executed],
    )
    for _, start, end, executed_start, executed_end in difflib.SequenceMatcher(
        None, golden_ids, executed_ids, False
    ).get_opcodes():
        for step in range(max(end - start, executed_end - executed_start)):
            golden_cell = golden[start + step] if start + step < end else None
            executed_cell = executed[executed_start + step] if executed_start + step < executed_end else None
            yield golden_cell, executed_cell


def _get_identity(cell: Cell) -> tuple[str, str]:
    return get_cell_type(cell), get_source(cell).strip()


def _is_excluded(golden_cell: IndexedCell | None, executed_cell: IndexedCell | None) -> bool:
    return any(
        indexed_cell is not None and read_marks(indexed_cell[1]) & {SKIP, IGNORE}
        for indexed_cell in (golden_cell, executed_cell)
    )


def _compare_cell(
    golden_cell: IndexedCell | None,
    executed_cell: IndexedCell | None,
    text_normalizer: Normalizer,
    settings: ComparisonConfig,
) -> CellDifference | Match:
    if golden_cell is None or executed_cell is None:
        index, cell = golden_cell or executed_cell or (0, {})
        text = get_source(cell)
        if golden_cell is None:
            reason = "the golden notebook does not have this cell"
            return CellDifference(index, get_cell_type(cell), "extra_cell", "major", "", text, reason)
        return CellDifference(index, get_cell_type(cell), "missing_cell", "major", text, "", "the cell is missing")
    index, cell = executed_cell
    if get_cell_type(golden_cell[1]) != get_cell_type(cell):
        reason = f"is a {get_cell_type(cell)} cell, was a {get_cell_type(golden_cell[1])} cell"
        texts = get_source(golden_cell[1]), get_source(cell)
        return CellDifference(index, get_cell_type(cell), "output_mismatch", "critical", *texts, reason)
    return (
        _compare_code(index, golden_cell[1], cell, text_normalizer, settings)
        if get_cell_type(cell) == "code"
        else _compare_markdown(index, golden_cell[1], cell, text_normalizer)
    )


def _compare_markdown(
    index: int, golden_cell: Cell, executed_cell: Cell, text_normalizer: Normalizer
) -> CellDifference | Match:
    match = text_normalizer.compare_texts(get_source(golden_cell), get_source(executed_cell))
    if match < Match.WHITESPACE_ONLY:
        return match
    severity: Severity = "minor" if match is Match.WHITESPACE_ONLY else "major"
    texts = get_source(golden_cell), get_source(executed_cell)
    return CellDifference(index, "markdown", "output_mismatch", severity, *texts, "the text differs")


def _compare_code(
    index: int, golden_cell: Cell, executed_cell: Cell, text_normalizer: Normalizer, settings: ComparisonConfig
) -> CellDifference | Match:
    golden_outputs = list_comparable_outputs(list_outputs(golden_cell), settings.ignore_output_types)
    executed_outputs = list_comparable_outputs(list_outputs(executed_cell), settings.ignore_output_types)
    with_counts = not settings.ignore_execution_count
    comparison = _compare_outputs(golden_outputs, executed_outputs, text_normalizer, with_counts=with_counts)
    if (
        with_counts
        and comparison.match < Match.WHITESPACE_ONLY
        and golden_cell.get("execution_count") != executed_cell.get("execution_count")
    ):
        reason = f"execution count is {executed_cell.get('execution_count')}, was {golden_cell.get('execution_count')}"
        comparison = OutputComparison(Match.DIFFERENT, reason)
    if comparison.match < Match.WHITESPACE_ONLY:
        return comparison.match
    has_new_error = _has_error(executed_outputs) and not _has_error(golden_outputs)
    severity: Severity = "critical" if has_new_error or comparison.is_structural else "major"
    if comparison.match is Match.WHITESPACE_ONLY:
        severity = "minor"
    kind = "execution_error" if has_new_error else "output_mismatch"
    return CellDifference(
        index,
        "code",
        kind,
        severity,
        _render_outputs(golden_outputs, text_normalizer),
        _render_outputs(executed_outputs, text_normalizer),
        comparison.reason,
    )


def _compare_outputs(
    golden_outputs: Sequence[ComparableOutput],
    executed_outputs: Sequence[ComparableOutput],
    text_normalizer: Normalizer,
    *,
    with_counts: bool,
) -> OutputComparison:
    """The worst comparison of all outputs. A different number of outputs is reported first, because it shifts all later
    ones.
    """
    if len(golden_outputs) != len(executed_outputs):
        reason = f"has {_describe_outputs(executed_outputs)}, had {_describe_outputs(golden_outputs)}"
        return OutputComparison(
            Match.DIFFERENT, reason, is_structural=_has_error(golden_outputs) or _has_error(executed_outputs)
        )
    comparisons = [
        compare_outputs(golden_output, executed_output, text_normalizer, with_counts=with_counts)
        for golden_output, executed_output in zip(golden_outputs, executed_outputs)
    ]
    return max(comparisons, key=lambda comparison: comparison.match, default=OutputComparison())


def _has_error(outputs: Sequence[ComparableOutput]) -> bool:
    return any(output.kind == "error" for output in outputs)


def _describe_outputs(outputs: Sequence[ComparableOutput]) -> str:
    kinds = ", ".join(output.kind for output in outputs)
    return f"{len(outputs)} output{'s' if len(outputs) > 1 else ''} ({kinds})" if outputs else "no output"


def _render_outputs(outputs: Sequence[ComparableOutput], text_normalizer: Normalizer) -> str:
    texts = []
    for output in outputs:
        text = text_normalizer.normalize(output.render_text())
        texts.append(f"{output.contents['ename']}: {text}" if output.kind == "error" else text)
    return "\n".join(texts)


def truncate(text: str, max_characters: int) -> str:
    return text if len(text) <= max_characters else text[:max_characters] + TRUNCATION_MARK


SKIPPED_COMPARISON: Final[dict[str, Any]] = {
    "strategy": "normalized",
    "result": "skipped",
    "totalCells": 0,
    "matchedCells": 0,
    "mismatchedCells": 0,
    "diffs": [],
}
