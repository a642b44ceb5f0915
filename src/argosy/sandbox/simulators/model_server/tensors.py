"""Converts V2 tensors (flat lists with a shape) to rows and predictions to tensors.

In: the inputs of a request, the predictions of a model. Out: rows, a tensor. Never: I/O.
"""

from __future__ import annotations

import math
from typing import Any

from argosy.sandbox.simulators.model_server.messages import Document, Refusal

MOST_DEPTH = 8


def rows(document: Document) -> list[Any]:
    """Return the rows a model predicts from; each of several inputs is a column. Raises RequestError."""
    inputs = document.get("inputs")
    if not isinstance(inputs, list) or not inputs or not all(isinstance(each, dict) for each in inputs):
        raise Refusal(400, 'the request has no inputs; send {"inputs": [{"name", "shape", "datatype", "data"}]}')
    columns = [_shaped(each) for each in inputs]
    if len(columns) == 1:
        return columns[0]
    if len({len(each) for each in columns}) != 1:
        raise Refusal(400, "the inputs have different lengths; give each the same number of rows")
    names = [str(each.get("name") or number) for number, each in enumerate(inputs)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _shaped(tensor: Document) -> list[Any]:
    data, shape = tensor.get("data"), tensor.get("shape")
    name = str(tensor.get("name") or "")[:100]
    if not isinstance(data, list):
        raise Refusal(400, f"input {name} has no data; send a list")
    values = flat(data)
    if not isinstance(shape, list) or len(shape) > MOST_DEPTH or not all(type(each) is int for each in shape):
        raise Refusal(400, f"input {name} has no shape; send a list of numbers")
    if min(shape, default=0) < 0 or math.prod(shape) != len(values):
        raise Refusal(400, f"input {name} has {len(values)} values, which do not fit its shape {shape}")
    for size in reversed(shape[1:]):
        values = [values[start : start + size] for start in range(0, len(values), size)] if size else []
    return values


def flat(value: list[Any]) -> list[Any]:
    """Flatten nested lists."""
    found: list[Any] = []
    for each in value:
        found += flat(each) if isinstance(each, list) else [each]
    return found


def tensor(name: str, predictions: list[Any]) -> Document:
    shape, level = [len(predictions)], predictions
    while level and all(isinstance(each, list) and len(each) == len(level[0]) for each in level):
        shape.append(len(level[0]))
        level = level[0]
    values = flat(predictions) if len(shape) > 1 else predictions
    return {"name": name, "shape": shape, "datatype": _type(values), "data": values}


def _type(values: list[Any]) -> str:
    kinds = {type(each) for each in values}
    if kinds == {bool}:
        return "BOOL"
    if kinds == {int}:
        return "INT64"
    return "FP64" if kinds and kinds <= {int, float} else "BYTES"
