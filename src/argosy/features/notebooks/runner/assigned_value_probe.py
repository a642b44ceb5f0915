"""Code that runs inside the kernel after a cell and describes the values that the cell assigned.

In: the names that the cell assigns. Out: JSON about their values. Never: changes or keeps a value; needs a library. The
source of this module is sent to the kernel as text, so it imports nothing of argosy and supports older Pythons.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_SCANNED_ITEMS = 2000000  # larger values are not scanned
MAX_SCANNED_LIST_ITEMS = 100000  # lists are slower to scan
MAX_COLUMNS = 200
MAX_NAME_CHARACTERS = 100
INFINITY = float("inf")


def answer(namespace: dict[str, Any], names: list[str]) -> str:
    """JSON about the assigned values, the result of the cell and the exit code of its last command."""
    missing = object()
    values = {}
    for name in names:
        value = namespace.get(name, missing)
        if value is not missing:
            values[name] = describe_value(value)
    result, inputs = namespace.get("Out"), namespace.get("In")
    count = len(inputs) - 1 if isinstance(inputs, list) else -1  # this cell is the last entry of In
    result = result.get(count, missing) if isinstance(result, dict) else missing
    status = namespace.get("_exit_code")
    return json.dumps(
        {
            "values": values,
            "result": None if result is missing else describe_value(result),
            "exit": status if isinstance(status, int) else None,
        }
    )


def describe_value(value: Any) -> dict[str, Any]:
    """Describe a value without side effects; a value that raises has at least a type."""
    value_type = type(value)
    facts: dict[str, Any] = {"type": value_type.__name__, "module": str(getattr(value_type, "__module__", ""))}
    try:
        _add_facts(value, facts)
    except Exception as error:
        facts["unasked"] = type(error).__name__
    return facts


def _add_facts(value: Any, facts: dict[str, Any]) -> None:
    if value is None or isinstance(value, (bool, str, bytes)):
        if isinstance(value, (str, bytes)):
            facts["length"] = len(value)
        return
    if isinstance(value, (int, float)):
        _add_number_facts(value, facts)
    elif isinstance(value, dict):
        facts["length"] = len(value)
        _add_dict_facts(list(value.items())[:MAX_COLUMNS], facts)
    elif isinstance(value, (list, tuple)):
        facts["length"] = len(value)
        _add_list_facts(value[:MAX_SCANNED_LIST_ITEMS], facts)
    elif isinstance(getattr(value, "shape", None), tuple):
        _add_array_facts(value, facts)
    elif isinstance(value, (set, frozenset)):
        facts["length"] = len(value)


def _add_number_facts(value: Any, facts: dict[str, Any]) -> None:
    value = float(value) if abs(value) < 1e300 or value != value or abs(value) == INFINITY else 1e300
    facts["nan"], facts["inf"], facts["size"] = int(value != value), int(abs(value) == INFINITY), 1
    if math.isfinite(value):
        facts["min"] = facts["max"] = value


def _add_list_facts(values: Any, facts: dict[str, Any]) -> None:
    numbers = [item for item in values if isinstance(item, float) or type(item) is int]
    facts["nan"] = sum(1 for item in numbers if item != item)
    facts["inf"] = sum(1 for item in numbers if item in (INFINITY, -INFINITY))
    facts["size"] = len(values)
    finite = [item for item in numbers if item == item and item not in (INFINITY, -INFINITY)]
    if finite:
        facts["min"], facts["max"] = float(min(finite)), float(max(finite))


def _add_dict_facts(items: Any, facts: dict[str, Any]) -> None:
    """Find the metrics of a dict that are not finite numbers."""
    bad_values = {}
    for name, value in items:
        if isinstance(value, float) and not math.isfinite(value):
            bad_values[str(name)[:MAX_NAME_CHARACTERS]] = [1, 1]
    facts["nan"], facts["size"], facts["columns"] = len(bad_values), len(items), bad_values


def _add_array_facts(value: Any, facts: dict[str, Any]) -> None:
    shape = [int(length) for length in value.shape]
    size = 1
    for length in shape:
        size *= length
    facts["shape"], facts["size"] = shape, size
    if size == 0 or size > MAX_SCANNED_ITEMS or facts["module"].startswith("dask"):
        return  # empty, too large, or not computed yet
    if hasattr(value, "columns") and len(shape) == 2:
        _add_frame_facts(value, facts)
    elif hasattr(value, "isna"):
        facts["nan"] = int(value.isna().sum())
        if value.dtype.kind in "fiu":
            _add_range(value, facts)
    elif hasattr(value, "null_count") and hasattr(value, "is_nan"):
        facts["nan"] = int(value.null_count())
    elif getattr(getattr(value, "dtype", None), "kind", "") in ("f", "i", "u") or "torch" in facts["module"]:
        facts["nan"] = int((value != value).sum())
        _add_range(value, facts)


def _add_range(value: Any, facts: dict[str, Any]) -> None:
    finite = value[(value == value) & (abs(value) != INFINITY)] if value.shape else value
    facts["inf"] = int((abs(value) == INFINITY).sum())
    has_range = len(finite) > 0 if value.shape else not (facts["nan"] or facts["inf"])
    if has_range:
        facts["min"], facts["max"] = float(finite.min()), float(finite.max())


def _add_frame_facts(value: Any, facts: dict[str, Any]) -> None:
    rows = facts["shape"][0]
    bad_columns = {}
    counts = value.isna().sum() if hasattr(value, "isna") else value.null_count().row(0)
    for name, count in list(zip(list(value.columns), list(counts)))[:MAX_COLUMNS]:
        if int(count):
            bad_columns[str(name)[:MAX_NAME_CHARACTERS]] = [int(count), rows]
    facts["columns"], facts["nan"] = bad_columns, sum(counts_pair[0] for counts_pair in bad_columns.values())
    if hasattr(value, "select_dtypes"):
        numbers = value.select_dtypes("number")
        minimum, maximum = (
            (float(numbers.min().min()), float(numbers.max().max())) if numbers.shape[1] else (0.0, INFINITY)
        )
        if math.isfinite(minimum) and math.isfinite(maximum):
            facts["min"], facts["max"] = minimum, maximum
