"""Checks cells against `expectedOutputs` of the job.

In: `expectedOutputs`, and facts about the value of a cell. Out: findings. Never: passes an expectation that it cannot
check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from argosy.features.notebooks.runner.cells import Cell, outputs_of, stream_of, text_of
from argosy.features.notebooks.runner.findings import Finding
from argosy.features.notebooks.runner.order import Expected

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
_ALSO: Final = {  # type names that people write, and the Python types they mean
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


def problems(expected: Iterable[Expected], cells: int) -> Iterator[Finding]:
    """Check the expectations themselves before the run."""
    for each in expected:
        if not 0 <= each.cell < cells:
            message = f"expectedOutputs: no cell {each.cell}; the notebook has {cells} cells, counted from 0"
            yield Finding(each.cell, "error", INVALID, message, "correct the cell number")
        elif each.shape and _wanted(each.shape) is None:
            message = f"expectedOutputs: {each.shape!r} is not a shape"
            yield Finding(each.cell, "error", INVALID, message, 'write it as "rows,columns"; -1 matches any number')


def unmet(expected: Expected, cell: Cell, facts: Facts | None) -> Iterator[Finding]:
    """Check one cell. `facts` describe its value; without them, its text output is checked."""
    known = facts or _read(cell)
    if facts is None and not known:
        if expected.not_empty or expected.type or expected.shape or expected.least is not None:
            message = "has no output, but an output is expected"
            yield Finding(expected.cell, "error", EMPTY, message, "end the cell with a value")
        return
    yield from _checked_type(expected, known)
    yield from _checked_shape(expected, known)
    yield from _checked_range(expected, known)
    if expected.not_empty and _is_empty(known):
        yield Finding(
            expected.cell, "error", EMPTY, f"returned an empty {known.get('type')}", "find out why it is empty"
        )


def _checked_type(expected: Expected, known: Facts) -> Iterator[Finding]:
    wanted = expected.type.strip().rpartition(".")[2].lower()
    kind = str(known.get("type") or "")
    if wanted and kind and kind.lower() not in _ALSO.get(wanted, {wanted}) | {wanted}:
        yield Finding(expected.cell, "error", TYPE, f"returned {kind}, expected {expected.type}", "convert the value")


def _checked_shape(expected: Expected, known: Facts) -> Iterator[Finding]:
    wanted = _wanted(expected.shape) if expected.shape else None
    if wanted is None:
        return
    shape = _shape(known)
    told = ",".join(map(str, shape)) if shape else "no shape"
    if len(shape) != len(wanted) or any(want not in (-1, has) for want, has in zip(wanted, shape)):
        message = f"has the shape {told}, expected {expected.shape}"
        yield Finding(expected.cell, "error", SHAPE, message, "find the step that drops or adds rows")


def _checked_range(expected: Expected, known: Facts) -> Iterator[Finding]:
    if expected.least is None and expected.most is None:
        return
    if known.get("nan") or known.get("inf"):
        what = "NaN" if known.get("nan") else "infinity"
        yield Finding(expected.cell, "error", NAN, f"returned {what}", "find out where it comes from")
    least, most = known.get("min"), known.get("max")
    if least is None or most is None:
        if not known.get("nan") and not known.get("inf"):
            message = "returned no number, but a range is expected"
            yield Finding(expected.cell, "error", RANGE, message, "end the cell with the number")
        return
    if expected.least is not None and least < expected.least:
        yield Finding(expected.cell, "error", RANGE, f"returned {least:g}, expected at least {expected.least:g}")
    if expected.most is not None and most > expected.most:
        yield Finding(expected.cell, "error", RANGE, f"returned {most:g}, expected at most {expected.most:g}")


def _wanted(shape: str) -> list[int] | None:
    try:
        return [int(each) for each in shape.strip("()[] ").split(",") if each.strip()]
    except ValueError:
        return None


def _shape(known: Facts) -> Sequence[int]:
    if known.get("shape") is not None:
        return list(known["shape"])
    return [known["length"]] if "length" in known else []


def _is_empty(known: Facts) -> bool:
    if known.get("type") == "NoneType":
        return True
    return 0 in _shape(known)


def _read(cell: Cell) -> dict[str, Any]:
    """Read facts about the value from the text output of a cell."""
    text = ""
    for output in outputs_of(cell):
        if output.get("output_type") in ("execute_result", "display_data"):
            text = text_of((output.get("data") or {}).get("text/plain")) or text
    text = text or stream_of(cell, "stdout")
    if not text.strip():
        return {}
    found: dict[str, Any] = {"length": len(text.strip())}
    if size := _FRAME_SIZE.search(text):
        found |= {"type": "DataFrame", "shape": [int(each) for each in size.groups() if each is not None]}
    if re.search(r"\bnan\b", text, re.IGNORECASE):
        found["nan"] = 1
    numbers = [float(each) for each in _NUMBER.findall(text[:100_000])]
    return {**found, "min": min(numbers), "max": max(numbers)} if numbers else found


def other_output_types(index: int, stored: Cell, cell: Cell) -> Iterator[Finding]:
    """For `checkOutputTypes`: compare the output types with those saved in the notebook."""
    was, now = _types(stored), _types(cell)
    if was and was != now:
        message = f"has output types {', '.join(sorted(now)) or 'none'}; it was saved with {', '.join(sorted(was))}"
        yield Finding(index, "error", TYPE, message, "save the notebook again if this is intended")


def _types(cell: Cell) -> set[str]:
    found: set[str] = set()
    for output in outputs_of(cell):
        data = output.get("data")
        kind = str(output.get("name") if output.get("output_type") == "stream" else output.get("output_type"))
        found |= set(map(str, data)) if isinstance(data, Mapping) else {kind}
    return found - {"stderr"}
