"""Compares JSON values as Kubernetes does: `1`, `1.0` and `true` differ, which are equal in Python.

In: two values. Out: whether they are equal. Never: confuses a number with a boolean.
"""

from __future__ import annotations

from typing import Any


def is_equal_json(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(
            name in right and is_equal_json(value, right[name]) for name, value in left.items()
        )
    if isinstance(left, list):
        return len(left) == len(right) and all(map(is_equal_json, left, right))
    return bool(left == right)
