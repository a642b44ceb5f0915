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

from argosy.features.notebooks.runner.cells import (
    IGNORE,
    INJECTED,
    SKIP,
    Cell,
    Notebook,
    marks_of,
    numbered,
    outputs_of,
    source_of,
    tags_of,
    type_of,
)
from argosy.features.notebooks.runner.mime import Outcome, Shown, compare_shown, shown
from argosy.features.notebooks.runner.normalization import Match, Normalizer
from argosy.features.notebooks.runner.order import Comparison

MOST_TEXT, MOST_DIFF, CUT = 500, 1000, "... (truncated)"
MOST_DIFFS: Final = 100  # limit of the job status; all of them are counted
MOST_READ: Final = 20_000  # characters read for a line diff
MOST_ALIGNED: Final = 2_000  # cells
Severity = Literal["minor", "major", "critical"]
Place = tuple[int, Cell]


@dataclass(frozen=True)
class Difference:
    """A cell that differs; index in the executed notebook, or in the golden one if the cell is missing."""

    cell: int
    cell_type: str
    kind: str  # output_mismatch, execution_error, missing_cell, extra_cell
    severity: Severity
    expected: str
    actual: str
    why: str

    def as_wire(self) -> dict[str, Any]:
        told = {"cellIndex": self.cell, "cellType": self.cell_type, "diffType": self.kind, "severity": self.severity}
        told |= {"expected": cut(self.expected, MOST_TEXT), "actual": cut(self.actual, MOST_TEXT)}
        return {**told, "diff": cut(self._diff(), MOST_DIFF)}

    def _diff(self) -> str:
        one, other = (text[:MOST_READ].splitlines() for text in (self.expected, self.actual))
        return "\n".join([self.why, *difflib.unified_diff(one, other, "golden", "executed", n=1, lineterm="")])


@dataclass(frozen=True)
class Compared:
    strategy: str
    total: int
    near: int  # cells that match within the tolerance
    left_out: int  # cells that their author excluded
    differences: tuple[Difference, ...]
    note: str = ""

    @property
    def matched(self) -> int:
        return self.total - len(self.differences)

    def as_wire(self) -> dict[str, Any]:
        """The content of `status.comparisonResult`."""
        return {
            "strategy": self.strategy,
            "result": "failed" if self.differences else "matched",
            "totalCells": self.total,
            "matchedCells": self.matched,
            "mismatchedCells": len(self.differences),
            "diffs": [each.as_wire() for each in self.differences[:MOST_DIFFS]],
        }


def compare(executed: Notebook, golden: Notebook, settings: Comparison) -> dict[str, Any]:
    """Raises ValueError if a timestamp pattern is not a regular expression."""
    return compared(executed, golden, settings).as_wire()


def failure_message(result: dict[str, Any]) -> str:
    counts = f"{result['matchedCells']}/{result['totalCells']}"
    return f"golden notebook comparison failed ({counts} cells matched)"


def normalizer(settings: Comparison) -> Normalizer:
    """Raises ValueError if a timestamp pattern is not a regular expression."""
    return Normalizer.of(
        exact=settings.strategy == "exact",
        tolerance=settings.tolerance,
        hide_times=settings.ignore_timestamps,
        patterns=settings.timestamp_patterns,
    )


def compared(executed: Notebook, golden: Notebook, settings: Comparison) -> Compared:
    how = normalizer(settings)
    total = near = left_out = 0
    differences = []
    for was, now in _paired(_compared_cells(golden), _compared_cells(executed)):
        total += 1
        if _is_left_out(was, now):
            left_out += 1
            continue
        found = _differing(was, now, how, settings)
        if isinstance(found, Difference):
            differences.append(found)
        near += found is Match.NEAR
    return Compared(settings.strategy, total, near, left_out, tuple(differences), _note(golden, executed))


def _compared_cells(notebook: Notebook) -> list[Place]:
    """Cells to compare. Raw cells have no output, and injected parameters belong to one run only."""
    kept = [(index, cell) for index, cell in numbered(notebook) if type_of(cell) in ("code", "markdown")]
    return [(index, cell) for index, cell in kept if INJECTED not in tags_of(cell)]


def _note(golden: Notebook, executed: Notebook) -> str:
    def has_outputs(notebook: Notebook) -> bool:
        return any(outputs_of(cell) for _, cell in numbered(notebook))

    if has_outputs(executed) and not has_outputs(golden):
        return "the golden notebook has no outputs; save it with outputs, or accept the outputs of this run"
    return ""


def _paired(golden: list[Place], executed: list[Place]) -> Iterator[tuple[Place | None, Place | None]]:
    """Pair cells by content, so that an inserted or removed cell does not shift the others."""
    if max(len(golden), len(executed)) > MOST_ALIGNED:
        yield from zip_longest(golden, executed)
        return
    before, after = [_identity(cell) for _, cell in golden], [_identity(cell) for _, cell in executed]
    for _, start, end, found_start, found_end in difflib.SequenceMatcher(None, before, after, False).get_opcodes():
        for step in range(max(end - start, found_end - found_start)):
            was = golden[start + step] if start + step < end else None
            now = executed[found_start + step] if found_start + step < found_end else None
            yield was, now


def _identity(cell: Cell) -> tuple[str, str]:
    return type_of(cell), source_of(cell).strip()


def _is_left_out(was: Place | None, now: Place | None) -> bool:
    return any(place is not None and marks_of(place[1]) & {SKIP, IGNORE} for place in (was, now))


def _differing(was: Place | None, now: Place | None, how: Normalizer, settings: Comparison) -> Difference | Match:
    if was is None or now is None:
        index, cell = was or now or (0, {})
        text = source_of(cell)
        if was is None:
            why = "the golden notebook does not have this cell"
            return Difference(index, type_of(cell), "extra_cell", "major", "", text, why)
        return Difference(index, type_of(cell), "missing_cell", "major", text, "", "the cell is missing")
    index, cell = now
    if type_of(was[1]) != type_of(cell):
        why = f"is a {type_of(cell)} cell, was a {type_of(was[1])} cell"
        texts = source_of(was[1]), source_of(cell)
        return Difference(index, type_of(cell), "output_mismatch", "critical", *texts, why)
    return _code(index, was[1], cell, how, settings) if type_of(cell) == "code" else _prose(index, was[1], cell, how)


def _prose(index: int, was: Cell, now: Cell, how: Normalizer) -> Difference | Match:
    match = how.texts(source_of(was), source_of(now))
    if match < Match.SPACED:
        return match
    severity: Severity = "minor" if match is Match.SPACED else "major"
    texts = source_of(was), source_of(now)
    return Difference(index, "markdown", "output_mismatch", severity, *texts, "the text differs")


def _code(index: int, was: Cell, now: Cell, how: Normalizer, settings: Comparison) -> Difference | Match:
    golden = shown(outputs_of(was), settings.ignore_output_types)
    found = shown(outputs_of(now), settings.ignore_output_types)
    with_counts = not settings.ignore_execution_count
    outcome = _all_shown(golden, found, how, with_counts=with_counts)
    if with_counts and outcome.match < Match.SPACED and was.get("execution_count") != now.get("execution_count"):
        why = f"execution count is {now.get('execution_count')}, was {was.get('execution_count')}"
        outcome = Outcome(Match.OTHER, why)
    if outcome.match < Match.SPACED:
        return outcome.match
    raised = _raises(found) and not _raises(golden)
    severity: Severity = "critical" if raised or outcome.is_structure else "major"
    if outcome.match is Match.SPACED:
        severity = "minor"
    kind = "execution_error" if raised else "output_mismatch"
    return Difference(index, "code", kind, severity, _text(golden, how), _text(found, how), outcome.why)


def _all_shown(golden: Sequence[Shown], found: Sequence[Shown], how: Normalizer, *, with_counts: bool) -> Outcome:
    """The worst comparison of all outputs. A different number of outputs is reported first, because it shifts all later
    ones.
    """
    if len(golden) != len(found):
        why = f"has {_counted(found)}, had {_counted(golden)}"
        return Outcome(Match.OTHER, why, is_structure=_raises(golden) or _raises(found))
    outcomes = [compare_shown(one, other, how, with_counts=with_counts) for one, other in zip(golden, found)]
    return max(outcomes, key=lambda each: each.match, default=Outcome())


def _raises(outputs: Sequence[Shown]) -> bool:
    return any(each.kind == "error" for each in outputs)


def _counted(outputs: Sequence[Shown]) -> str:
    kinds = ", ".join(each.kind for each in outputs)
    return f"{len(outputs)} output{'s' if len(outputs) > 1 else ''} ({kinds})" if outputs else "no output"


def _text(outputs: Sequence[Shown], how: Normalizer) -> str:
    texts = []
    for each in outputs:
        text = how.text(each.text())
        texts.append(f"{each.parts['ename']}: {text}" if each.kind == "error" else text)
    return "\n".join(texts)


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + CUT


NOT_COMPARED: Final[dict[str, Any]] = {
    "strategy": "normalized",
    "result": "skipped",
    "totalCells": 0,
    "matchedCells": 0,
    "mismatchedCells": 0,
    "diffs": [],
}
