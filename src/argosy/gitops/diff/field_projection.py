"""Reduces one document to the fields of another.

In: two values. Out: a new value that shares the remaining parts. Never: mutates an input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def keep_pattern_fields(pattern: Any, value: Any) -> Any:
    """Remove fields that the pattern does not have. argo: list elements beyond the pattern's length stay complete."""
    if isinstance(pattern, dict) and isinstance(value, dict):
        return keep_pattern_keys(pattern, value)
    if isinstance(pattern, list) and isinstance(value, list):
        return keep_pattern_elements(pattern, value)
    return value


def keep_pattern_keys(pattern: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: keep_pattern_fields(below, value[name]) for name, below in pattern.items() if name in value}


def keep_pattern_elements(pattern: Sequence[Any], value: Sequence[Any]) -> list[Any]:
    common = [keep_pattern_fields(below, item) for below, item in zip(pattern, value)]
    return [*common, *value[len(common) :]]


def is_same_json(left: Any, right: Any) -> bool:
    """True if both are the same JSON: true is not 1, but 1.0 is 1."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and len(left) == len(right)
            and all(name in right and is_same_json(value, right[name]) for name, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(is_same_json, left, right))
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)
