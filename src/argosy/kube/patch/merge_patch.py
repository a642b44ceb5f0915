"""JSON merge patch (RFC 7386), as the kube-apiserver applies it.

In: a document and a patch, or two documents. Out: a new document, or the patch between them. Never: mutates its input.
"""

from __future__ import annotations

from typing import Any


def apply(document: Any, patch: Any) -> Any:
    """Maps merge, null deletes, everything else replaces."""
    if not isinstance(patch, dict):
        return without_nulls(patch)
    if not isinstance(document, dict):
        return without_nulls(patch)
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = apply(merged[key], value)
        else:
            merged[key] = without_nulls(value)
    return merged


def without_nulls(value: Any) -> Any:
    """k8s: nulls of maps vanish in values that are new, also in maps inside lists."""
    if isinstance(value, dict):
        return {key: without_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [without_nulls(child) for child in value]
    return value


def diff(old: Any, new: Any) -> Any:
    """A patch that turns `old` into `new`, `{}` if they are equal. A null in `new` cannot be said in a merge patch."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif isinstance(old[key], dict) and isinstance(value, dict):
            if changes := diff(old[key], value):
                patch[key] = changes
        elif _differ(old[key], value):
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    return patch


def _differ(one: Any, other: Any) -> bool:
    return bool(one != other) or isinstance(one, bool) is not isinstance(other, bool)
