"""Builds prediction requests and compares responses with the expected output.

In: texts of a job, a response. Out: a path and a body; the distance of two outputs. Never: I/O.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError

OUTPUT_FIELDS: Final = ("predictions", "outputs", "choices")
MAX_SHOWN_CHARACTERS: Final = 500


def build_request(name: str, text: str, path: str = "") -> tuple[str, Any]:
    """`path` is the prediction endpoint of a custom platform. Raises UserError if `text` is not JSON."""
    body = parse_json(text, "testData")
    if path:
        return path, body
    if not isinstance(body, dict):
        body = {"instances": body if isinstance(body, list) else [body]}
    paths_by_field = {
        "instances": f"/v1/models/{name}:predict",
        "inputs": f"/v2/models/{name}/infer",
        "messages": "/v1/chat/completions",
        "prompt": "/v1/completions",
    }
    request_path = next((candidate_path for field, candidate_path in paths_by_field.items() if field in body), None)
    if request_path is None:
        raise UserError(f"testData has none of {', '.join(paths_by_field)}; use one of them, or a list of instances")
    return request_path, body


def parse_json(text: str, field: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        field_path = f"spec.modelValidation.predictionValidation.{field}"
        raise UserError("is not JSON; use for example [[1.0, 2.0]]", where=field_path) from None


def compute_distance(expected: Any, actual: Any) -> float:
    """The largest difference of two numbers; infinite if the outputs differ in anything else."""
    actual = _unwrap(expected, actual)
    if isinstance(expected, bool) or isinstance(actual, bool):
        return 0.0 if expected is actual else math.inf
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        if math.isnan(expected) or math.isnan(actual):
            return 0.0 if math.isnan(expected) and math.isnan(actual) else math.inf
        return abs(float(expected) - float(actual)) if expected != actual else 0.0
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return math.inf
        return max(
            (compute_distance(expected_item, actual_item) for expected_item, actual_item in zip(expected, actual)),
            default=0.0,
        )
    if isinstance(expected, dict) and isinstance(actual, dict):  # expected keys must exist, others may
        if not expected.keys() <= actual.keys():
            return math.inf
        return max(
            (compute_distance(expected_value, actual[name]) for name, expected_value in expected.items()), default=0.0
        )
    return 0.0 if expected == actual else math.inf


def _unwrap(expected: Any, actual: Any) -> Any:
    """Unwrap the response envelope if the expected output has none."""
    if isinstance(actual, Mapping) and not isinstance(expected, Mapping):
        return next((actual[name] for name in OUTPUT_FIELDS if name in actual), actual)
    return actual


def render_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 16] + "... (truncated)"
