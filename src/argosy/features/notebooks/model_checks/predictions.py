"""Builds prediction requests and compares responses with the expected output.

In: texts of a job, a response. Out: a path and a body; the distance of two outputs. Never: I/O.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from argosy.errors import UserError

ANSWERS: Final = ("predictions", "outputs", "choices")
MOST_SHOWN: Final = 500


def question(name: str, text: str, path: str = "") -> tuple[str, Any]:
    """`path` is the prediction endpoint of a custom platform. Raises UserError if `text` is not JSON."""
    document = read(text, "testData")
    if path:
        return path, document
    if not isinstance(document, dict):
        document = {"instances": document if isinstance(document, list) else [document]}
    known = {
        "instances": f"/v1/models/{name}:predict",
        "inputs": f"/v2/models/{name}/infer",
        "messages": "/v1/chat/completions",
        "prompt": "/v1/completions",
    }
    found = next((where for field, where in known.items() if field in document), None)
    if found is None:
        raise UserError(f"testData has none of {', '.join(known)}; use one of them, or a list of instances")
    return found, document


def read(text: str, field: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        where = f"spec.modelValidation.predictionValidation.{field}"
        raise UserError("is not JSON; use for example [[1.0, 2.0]]", where=where) from None


def distance(expected: Any, answer: Any) -> float:
    """The largest difference of two numbers; infinite if the outputs differ in anything else."""
    answer = _without_shell(expected, answer)
    if isinstance(expected, bool) or isinstance(answer, bool):
        return 0.0 if expected is answer else math.inf
    if isinstance(expected, int | float) and isinstance(answer, int | float):
        if math.isnan(expected) or math.isnan(answer):
            return 0.0 if math.isnan(expected) and math.isnan(answer) else math.inf
        return abs(float(expected) - float(answer)) if expected != answer else 0.0
    if isinstance(expected, list) and isinstance(answer, list):
        if len(expected) != len(answer):
            return math.inf
        return max((distance(one, other) for one, other in zip(expected, answer)), default=0.0)
    if isinstance(expected, dict) and isinstance(answer, dict):  # expected keys must exist, others may
        if not expected.keys() <= answer.keys():
            return math.inf
        return max((distance(each, answer[name]) for name, each in expected.items()), default=0.0)
    return 0.0 if expected == answer else math.inf


def _without_shell(expected: Any, answer: Any) -> Any:
    """Unwrap the response envelope if the expected output has none."""
    if isinstance(answer, Mapping) and not isinstance(expected, Mapping):
        return next((answer[name] for name in ANSWERS if name in answer), answer)
    return answer


def shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 16] + "... (truncated)"
