"""JSON merge patch (RFC 7386), as the kube-apiserver applies it.

In: a document and a patch, or two documents. Out: a new document, or a patch. Never: mutates its input.
"""

from __future__ import annotations

from typing import Any


def apply(document: Any, patch: Any) -> Any:
    """Apply a merge patch: maps merge, null deletes, any other value replaces."""
    if not isinstance(patch, dict):
        return remove_nulls(patch)
    if not isinstance(document, dict):
        return remove_nulls(patch)
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = apply(merged[key], value)
        else:
            merged[key] = remove_nulls(value)
    return merged


def remove_nulls(value: Any) -> Any:
    """Remove null map entries from a new value. k8s: also in maps inside lists."""
    if isinstance(value, dict):
        return {key: remove_nulls(child) for key, child in value.items() if child is not None}
    if isinstance(value, list):
        return [remove_nulls(child) for child in value]
    return value


def diff(old: Any, new: Any) -> Any:
    """Build a patch that turns `old` into `new`, `{}` if they are equal. It cannot express a null in `new`."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    patch: dict[str, Any] = {}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif isinstance(old[key], dict) and isinstance(value, dict):
            if changes := diff(old[key], value):
                patch[key] = changes
        elif _values_differ(old[key], value):
            patch[key] = value
    for key in old:
        if key not in new:
            patch[key] = None
    return patch


def _values_differ(left: Any, right: Any) -> bool:
    return bool(left != right) or isinstance(left, bool) is not isinstance(right, bool)
