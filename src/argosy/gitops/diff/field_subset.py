"""Reduces one document to the fields of another.

In: two values. Out: a new value that shares the remaining parts. Never: mutates an input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def trimmed(pattern: Any, value: Any) -> Any:
    """Remove fields that the pattern does not have. argo: list elements beyond the pattern's length stay complete."""
    if isinstance(pattern, dict) and isinstance(value, dict):
        return trimmed_map(pattern, value)
    if isinstance(pattern, list) and isinstance(value, list):
        return trimmed_list(pattern, value)
    return value


def trimmed_map(pattern: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: trimmed(below, value[name]) for name, below in pattern.items() if name in value}


def trimmed_list(pattern: Sequence[Any], value: Sequence[Any]) -> list[Any]:
    both = [trimmed(below, item) for below, item in zip(pattern, value)]
    return [*both, *value[len(both) :]]


def same(one: Any, other: Any) -> bool:
    """True if both are the same JSON: true is not 1, but 1.0 is 1."""
    if one is other:
        return True
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and len(one) == len(other)
            and all(name in other and same(value, other[name]) for name, value in one.items())
        )
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)
