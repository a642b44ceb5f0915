"""Checks cells against `expectedOutputs` of the job.

In: `expectedOutputs`, and facts about the value of a cell. Out: findings. Never: passes an expectation that it cannot
check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.features.notebooks.runner.cell_source_and_tags import Cell, join_text, list_outputs, read_stream
from argosy.features.notebooks.runner.findings_that_fail_validation import NotebookFinding
from argosy.features.notebooks.runner.run_request import ExpectedOutput

INVALID, EMPTY, RANGE, SHAPE, NAN, TYPE = (
    "invalid-spec",
    "empty-output",
    "out-of-range",
    "shape-mismatch",
    "nan-detected",
    "type-mismatch",
)
Facts = Mapping[str, Any]
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]*\w)")
_FRAME_SIZE: Final = re.compile(r"\[(\d+) rows x (\d+) columns\]|shape: \((\d+), (\d+)\)")
_TYPE_ALIASES: Final = {  # type names that people write, and the Python types they mean
    "dataframe": {"dataframe"},
    "series": {"series"},
    "array": {"ndarray", "array", "tensor", "list"},
    "ndarray": {"ndarray"},
    "number": {"int", "float", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "decimal"},
    "numeric": {"int", "float", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "decimal"},
    "float": {"float", "float16", "float32", "float64"},
    "int": {"int", "int8", "int16", "int32", "int64"},
    "integer": {"int", "int8", "int16", "int32", "int64"},
    "string": {"str"},
    "text": {"str"},
    "boolean": {"bool"},
    "object": {"dict"},
}


def check_expectations(expected: Iterable[ExpectedOutput], cell_count: int) -> Iterator[NotebookFinding]:
    """Check the expectations themselves before the run."""
    for expectation in expected:
        if not 0 <= expectation.cell < cell_count:
            message = (
                f"expectedOutputs: no cell {expectation.cell}; the notebook has {cell_count} cells, counted from 0"
            )
            yield NotebookFinding(expectation.cell, "error", INVALID, message, "correct the cell number")
        elif expectation.shape and _parse_shape(expectation.shape) is None:
            message = f"expectedOutputs: {expectation.shape!r} is not a shape"
            yield NotebookFinding(
                expectation.cell, "error", INVALID, message, 'write it as "rows,columns"; -1 matches any number'
            )


def check_output(expected: ExpectedOutput, cell: Cell, facts: Facts | None) -> Iterator[NotebookFinding]:
    """Check one cell. `facts` describe its value; without them, its text output is checked."""
    value_facts = facts or _read_facts_from_text(cell)
    if facts is None and not value_facts:
        if expected.not_empty or expected.type or expected.shape or expected.min_value is not None:
            message = "has no output, but an output is expected"
            yield NotebookFinding(expected.cell, "error", EMPTY, message, "end the cell with a value")
        return
    yield from _check_type(expected, value_facts)
    yield from _check_shape(expected, value_facts)
    yield from _check_range(expected, value_facts)
    if expected.not_empty and _is_empty(value_facts):
        yield NotebookFinding(
            expected.cell, "error", EMPTY, f"returned an empty {value_facts.get('type')}", "find out why it is empty"
        )


def _check_type(expected: ExpectedOutput, facts: Facts) -> Iterator[NotebookFinding]:
    expected_type = expected.type.strip().rpartition(".")[2].lower()
    actual_type = str(facts.get("type") or "")
    if (
        expected_type
        and actual_type
        and actual_type.lower() not in _TYPE_ALIASES.get(expected_type, {expected_type}) | {expected_type}
    ):
        yield NotebookFinding(
            expected.cell, "error", TYPE, f"returned {actual_type}, expected {expected.type}", "convert the value"
        )


def _check_shape(expected: ExpectedOutput, facts: Facts) -> Iterator[NotebookFinding]:
    expected_shape = _parse_shape(expected.shape) if expected.shape else None
    if expected_shape is None:
        return
    shape = _get_shape(facts)
    shape_text = ",".join(map(str, shape)) if shape else "no shape"
    if len(shape) != len(expected_shape) or any(
        expected_size not in (-1, actual_size) for expected_size, actual_size in zip(expected_shape, shape)
    ):
        message = f"has the shape {shape_text}, expected {expected.shape}"
        yield NotebookFinding(expected.cell, "error", SHAPE, message, "find the step that drops or adds rows")


def _check_range(expected: ExpectedOutput, facts: Facts) -> Iterator[NotebookFinding]:
    if expected.min_value is None and expected.max_value is None:
        return
    if facts.get("nan") or facts.get("inf"):
        value_text = "NaN" if facts.get("nan") else "infinity"
        yield NotebookFinding(expected.cell, "error", NAN, f"returned {value_text}", "find out where it comes from")
    minimum, maximum = facts.get("min"), facts.get("max")
    if minimum is None or maximum is None:
        if not facts.get("nan") and not facts.get("inf"):
            message = "returned no number, but a range is expected"
            yield NotebookFinding(expected.cell, "error", RANGE, message, "end the cell with the number")
        return
    if expected.min_value is not None and minimum < expected.min_value:
        yield NotebookFinding(
            expected.cell, "error", RANGE, f"returned {minimum:g}, expected at least {expected.min_value:g}"
        )
    if expected.max_value is not None and maximum > expected.max_value:
        yield NotebookFinding(
            expected.cell, "error", RANGE, f"returned {maximum:g}, expected at most {expected.max_value:g}"
        )


def _parse_shape(shape: str) -> list[int] | None:
    try:
        return [int(part) for part in shape.strip("()[] ").split(",") if part.strip()]
    except ValueError:
        return None


def _get_shape(facts: Facts) -> Sequence[int]:
    if facts.get("shape") is not None:
        return list(facts["shape"])
    return [facts["length"]] if "length" in facts else []


def _is_empty(facts: Facts) -> bool:
    if facts.get("type") == "NoneType":
        return True
    return 0 in _get_shape(facts)


def _read_facts_from_text(cell: Cell) -> dict[str, Any]:
    """Read facts about the value from the text output of a cell."""
    text = ""
    for output in list_outputs(cell):
        if output.get("output_type") in ("execute_result", "display_data"):
            text = join_text((output.get("data") or {}).get("text/plain")) or text
    text = text or read_stream(cell, "stdout")
    if not text.strip():
        return {}
    facts: dict[str, Any] = {"length": len(text.strip())}
    if size := _FRAME_SIZE.search(text):
        facts |= {
            "type": "DataFrame",
            "shape": [int(text_part) for text_part in size.groups() if text_part is not None],
        }
    if re.search(r"\bnan\b", text, re.IGNORECASE):
        facts["nan"] = 1
    numbers = [float(text_part) for text_part in _NUMBER.findall(text[:100_000])]
    return {**facts, "min": min(numbers), "max": max(numbers)} if numbers else facts


def check_output_types(index: int, saved_cell: Cell, cell: Cell) -> Iterator[NotebookFinding]:
    """For `checkOutputTypes`: compare the output types with those saved in the notebook."""
    saved_types, current_types = _list_output_types(saved_cell), _list_output_types(cell)
    if saved_types and saved_types != current_types:
        message = (
            f"has output types {', '.join(sorted(current_types)) or 'none'}; it was saved with "
            f"{', '.join(sorted(saved_types))}"
        )
        yield NotebookFinding(index, "error", TYPE, message, "save the notebook again if this is intended")


def _list_output_types(cell: Cell) -> set[str]:
    types: set[str] = set()
    for output in list_outputs(cell):
        data = output.get("data")
        kind = str(output.get("name") if output.get("output_type") == "stream" else output.get("output_type"))
        types |= set(map(str, data)) if isinstance(data, Mapping) else {kind}
    return types - {"stderr"}
