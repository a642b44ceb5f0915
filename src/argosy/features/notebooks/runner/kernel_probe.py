"""Code that runs inside the kernel after a cell and describes the values that the cell assigned.

In: the names that the cell assigns. Out: JSON about their values. Never: changes or keeps a value; needs a library. The
source of this module is sent to the kernel as text, so it imports nothing of argosy and supports older Pythons.
"""

from __future__ import annotations

import json
import math
from typing import Any

MOST_ITEMS = 2000000  # larger values are not scanned
MOST_LISTED = 100000  # lists are slower to scan
MOST_COLUMNS = 200
MOST_NAME = 100
INFINITY = float("inf")


def answer(namespace: dict[str, Any], names: list[str]) -> str:
    """JSON about the assigned values, the result of the cell and the exit code of its last command."""
    missing = object()
    values = {}
    for name in names:
        value = namespace.get(name, missing)
        if value is not missing:
            values[name] = facts(value)
    shown, typed = namespace.get("Out"), namespace.get("In")
    count = len(typed) - 1 if isinstance(typed, list) else -1  # this cell is the last entry of In
    shown = shown.get(count, missing) if isinstance(shown, dict) else missing
    status = namespace.get("_exit_code")
    return json.dumps(
        {
            "values": values,
            "result": None if shown is missing else facts(shown),
            "exit": status if isinstance(status, int) else None,
        }
    )


def facts(value: Any) -> dict[str, Any]:
    """Describe a value without side effects; a value that raises has at least a type."""
    kind = type(value)
    found: dict[str, Any] = {"type": kind.__name__, "module": str(getattr(kind, "__module__", ""))}
    try:
        _look(value, found)
    except Exception as error:
        found["unasked"] = type(error).__name__
    return found


def _look(value: Any, found: dict[str, Any]) -> None:
    if value is None or isinstance(value, (bool, str, bytes)):
        if isinstance(value, (str, bytes)):
            found["length"] = len(value)
        return
    if isinstance(value, (int, float)):
        _number(value, found)
    elif isinstance(value, dict):
        found["length"] = len(value)
        _parts(list(value.items())[:MOST_COLUMNS], found)
    elif isinstance(value, (list, tuple)):
        found["length"] = len(value)
        _items(value[:MOST_LISTED], found)
    elif isinstance(getattr(value, "shape", None), tuple):
        _shaped(value, found)
    elif isinstance(value, (set, frozenset)):
        found["length"] = len(value)


def _number(value: Any, found: dict[str, Any]) -> None:
    value = float(value) if abs(value) < 1e300 or value != value or abs(value) == INFINITY else 1e300
    found["nan"], found["inf"], found["size"] = int(value != value), int(abs(value) == INFINITY), 1
    if math.isfinite(value):
        found["min"] = found["max"] = value


def _items(values: Any, found: dict[str, Any]) -> None:
    numbers = [each for each in values if isinstance(each, float) or type(each) is int]
    found["nan"] = sum(1 for each in numbers if each != each)
    found["inf"] = sum(1 for each in numbers if each in (INFINITY, -INFINITY))
    found["size"] = len(values)
    finite = [each for each in numbers if each == each and each not in (INFINITY, -INFINITY)]
    if finite:
        found["min"], found["max"] = float(min(finite)), float(max(finite))


def _parts(items: Any, found: dict[str, Any]) -> None:
    """Find the metrics of a dict that are not finite numbers."""
    bad = {}
    for name, value in items:
        if isinstance(value, float) and not math.isfinite(value):
            bad[str(name)[:MOST_NAME]] = [1, 1]
    found["nan"], found["size"], found["columns"] = len(bad), len(items), bad


def _shaped(value: Any, found: dict[str, Any]) -> None:
    shape = [int(each) for each in value.shape]
    size = 1
    for each in shape:
        size *= each
    found["shape"], found["size"] = shape, size
    if size == 0 or size > MOST_ITEMS or found["module"].startswith("dask"):
        return  # empty, too large, or not computed yet
    if hasattr(value, "columns") and len(shape) == 2:
        _frame(value, found)
    elif hasattr(value, "isna"):
        found["nan"] = int(value.isna().sum())
        if value.dtype.kind in "fiu":
            _range(value, found)
    elif hasattr(value, "null_count") and hasattr(value, "is_nan"):
        found["nan"] = int(value.null_count())
    elif getattr(getattr(value, "dtype", None), "kind", "") in ("f", "i", "u") or "torch" in found["module"]:
        found["nan"] = int((value != value).sum())
        _range(value, found)


def _range(value: Any, found: dict[str, Any]) -> None:
    finite = value[(value == value) & (abs(value) != INFINITY)] if value.shape else value
    found["inf"] = int((abs(value) == INFINITY).sum())
    is_known = len(finite) > 0 if value.shape else not (found["nan"] or found["inf"])
    if is_known:
        found["min"], found["max"] = float(finite.min()), float(finite.max())


def _frame(value: Any, found: dict[str, Any]) -> None:
    rows = found["shape"][0]
    bad = {}
    counts = value.isna().sum() if hasattr(value, "isna") else value.null_count().row(0)
    for name, number in list(zip(list(value.columns), list(counts)))[:MOST_COLUMNS]:
        if int(number):
            bad[str(name)[:MOST_NAME]] = [int(number), rows]
    found["columns"], found["nan"] = bad, sum(each[0] for each in bad.values())
    if hasattr(value, "select_dtypes"):
        numbers = value.select_dtypes("number")
        least, most = (float(numbers.min().min()), float(numbers.max().max())) if numbers.shape[1] else (0.0, INFINITY)
        if math.isfinite(least) and math.isfinite(most):
            found["min"], found["max"] = least, most
