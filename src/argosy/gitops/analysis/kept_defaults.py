"""Computes which defaults a stored object keeps when a changed manifest is applied.

In: a manifest before and after, each also with its defaults. Out: the object that would be stored. Never: I/O.
"""

from __future__ import annotations

from typing import Any


def carried(before: Any, after: Any, old: Any, new: Any) -> Any:
    """k8s: a field that nobody writes keeps the default that it got first, even if today's default differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        one, other = _fields(before), _fields(after)
        kept = {name: value for name, value in old.items() if name not in one and name not in other}
        inner = {
            name: carried(one[name], other[name], old[name], value) if name in one and name in old else value
            for name, value in new.items()
            if name in other
        }
        gone = {name: value for name, value in new.items() if name in one and name not in other}  # defaulted again
        fresh = {name: value for name, value in new.items() if name not in old}
        return {**fresh, **kept, **gone, **inner}
    if isinstance(old, list) and isinstance(new, list):
        return [_element(place, before, after, old, new) for place in range(len(new))]
    return new


def _element(place: int, before: Any, after: Any, old: list[Any], new: list[Any]) -> Any:
    """Merge one list element with its counterpart before: by name, or else by index."""
    given = after if isinstance(after, list) and len(after) == len(new) else new
    names = [each.get("name") if isinstance(each, dict) else None for each in old]
    name = new[place].get("name") if isinstance(new[place], dict) else None
    where = names.index(name) if name is not None and name in names else place
    if where >= len(old) or not isinstance(before, list) or len(before) != len(old):
        return new[place]
    return carried(before[where], given[place], old[where], new[place])


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
