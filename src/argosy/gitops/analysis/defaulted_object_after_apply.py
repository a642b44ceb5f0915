"""Computes which defaults a stored object keeps when a changed manifest is applied.

In: a manifest before and after, each also with its defaults. Out: the object that would be stored. Never: I/O.
"""

from __future__ import annotations

from typing import Any


def merge_defaults(before: Any, after: Any, old_defaulted: Any, new_defaulted: Any) -> Any:
    """k8s: a field that nobody writes keeps the default that it got first, even if today's default differs."""
    if isinstance(old_defaulted, dict) and isinstance(new_defaulted, dict):
        before_fields, after_fields = _as_map(before), _as_map(after)
        kept = {
            name: value
            for name, value in old_defaulted.items()
            if name not in before_fields and name not in after_fields
        }
        inner = {
            name: merge_defaults(before_fields[name], after_fields[name], old_defaulted[name], value)
            if name in before_fields and name in old_defaulted
            else value
            for name, value in new_defaulted.items()
            if name in after_fields
        }
        redefaulted = {
            name: value for name, value in new_defaulted.items() if name in before_fields and name not in after_fields
        }  # defaulted again
        added = {name: value for name, value in new_defaulted.items() if name not in old_defaulted}
        return {**added, **kept, **redefaulted, **inner}
    if isinstance(old_defaulted, list) and isinstance(new_defaulted, list):
        return [
            _merge_element(index, before, after, old_defaulted, new_defaulted) for index in range(len(new_defaulted))
        ]
    return new_defaulted


def _merge_element(index: int, before: Any, after: Any, old: list[Any], new: list[Any]) -> Any:
    """Merge one list element with its counterpart before: by name, or else by index."""
    written = after if isinstance(after, list) and len(after) == len(new) else new
    names = [element.get("name") if isinstance(element, dict) else None for element in old]
    name = new[index].get("name") if isinstance(new[index], dict) else None
    old_index = names.index(name) if name is not None and name in names else index
    if old_index >= len(old) or not isinstance(before, list) or len(before) != len(old):
        return new[index]
    return merge_defaults(before[old_index], written[index], old[old_index], new[index])


def _as_map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
