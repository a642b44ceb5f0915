"""Converts V2 tensors (flat lists with a shape) to rows and predictions to tensors.

In: the inputs of a request, the predictions of a model. Out: rows, a tensor. Never: I/O.
"""

from __future__ import annotations

import math
from typing import Any

from argosy.sandbox.simulators.model_server.request_reply_types import JsonDocument, RequestError

MAX_DIMENSIONS = 8


def read_rows(document: JsonDocument) -> list[Any]:
    """Return the rows a model predicts from; each of several inputs is a column. Raises RequestError."""
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or not inputs or not all(isinstance(item, dict) for item in inputs):
        raise RequestError(400, 'the request has no inputs; send {"inputs": [{"name", "shape", "datatype", "data"}]}')
    columns = [_reshape(item) for item in inputs]
    if len(columns) == 1:
        return columns[0]
    if len({len(item) for item in columns}) != 1:
        raise RequestError(400, "the inputs have different lengths; give each the same number of rows")
    names = [str(item.get("name") or number) for number, item in enumerate(inputs)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _reshape(tensor: JsonDocument) -> list[Any]:
    data, shape = tensor.get("data"), tensor.get("shape")
    name = str(tensor.get("name") or "")[:100]
    if not isinstance(data, list):
        raise RequestError(400, f"input {name} has no data; send a list")
    values = flatten(data)
    if (
        not isinstance(shape, list)
        or len(shape) > MAX_DIMENSIONS
        or not all(type(dimension) is int for dimension in shape)
    ):
        raise RequestError(400, f"input {name} has no shape; send a list of numbers")
    if min(shape, default=0) < 0 or math.prod(shape) != len(values):
        raise RequestError(400, f"input {name} has {len(values)} values, which do not fit its shape {shape}")
    for size in reversed(shape[1:]):
        values = [values[start : start + size] for start in range(0, len(values), size)] if size else []
    return values


def flatten(values: list[Any]) -> list[Any]:
    """Flatten nested lists."""
    flattened: list[Any] = []
    for item in values:
        flattened += flatten(item) if isinstance(item, list) else [item]
    return flattened


def build_tensor(name: str, predictions: list[Any]) -> JsonDocument:
    shape, level = [len(predictions)], predictions
    while level and all(isinstance(item, list) and len(item) == len(level[0]) for item in level):
        shape.append(len(level[0]))
        level = level[0]
    values = flatten(predictions) if len(shape) > 1 else predictions
    return {"name": name, "shape": shape, "datatype": _choose_datatype(values), "data": values}


def _choose_datatype(values: list[Any]) -> str:
    types = {type(value) for value in values}
    if types == {bool}:
        return "BOOL"
    if types == {int}:
        return "INT64"
    return "FP64" if types and types <= {int, float} else "BYTES"
