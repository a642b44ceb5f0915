"""What must change in a live manifest, as a merge patch and as sentences.

In: live and desired. Out: a patch, or None; sentences about it. Never: touches a field that nobody asked about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from argosy.model.manifest import Manifest
from argosy.patch.merge_patch import diff

LONGEST: Final = 60
_NOTHING: Final = object()


def update(live: Any, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    """The merge patch that makes live hold all that is asked; a None in `asked` means that it must not be there."""
    patch = _patch(live if isinstance(live, Mapping) else {}, asked)
    return patch or None


def _patch(live: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name, value in asked.items():
        found = live.get(name, _NOTHING)
        if value is None:
            if found is not _NOTHING:
                patch[name] = None
        elif isinstance(value, Mapping) and isinstance(found, Mapping):
            if inner := _patch(found, value):
                patch[name] = inner
        elif found is _NOTHING or found != value:
            patch[name] = value
    return patch


def replacement(live: Manifest, desired: Manifest, whole: str) -> dict[str, Any] | None:
    """As `update`, and the field `whole` holds nothing but what is desired."""
    metadata = {name: given for name in ("labels", "annotations") if (given := desired["metadata"].get(name))}
    patch = update(live, {"metadata": metadata}) or {}
    if inner := diff(live.get(whole) or {}, desired.get(whole) or {}):
        patch[whole] = inner
    return patch or None


def sentences(live: Mapping[str, Any], patch: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """One a field: what it was, and what it will be."""
    for name, value in patch.items():
        path = f"{place}.{name}" if place else name
        found = live.get(name) if isinstance(live, Mapping) else None
        if isinstance(value, Mapping) and (found is None or isinstance(found, Mapping)):
            yield from sentences(found or {}, value, path)
        elif value is None:
            yield f"{path}: {_short(found)} is removed"
        elif found is None:
            yield f"{path}: {_short(value)} is added"
        else:
            yield f"{path}: {_short(found)} → {_short(value)}"


def _short(value: Any) -> str:
    text = str(value) if not isinstance(value, bool) else str(value).lower()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
