"""A manifest cut down to the fields that a script reads.

In: a manifest, what is read of it. Out: the manifest with nothing else. Never: reads a script itself: what does that
takes long to load.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from argosy.kube.objects import Manifest

# Each field with what is read below it: None is all of it; an empty tuple only that it is there.
Reads: TypeAlias = "tuple[tuple[str, Reads | None], ...]"


def project(manifest: Manifest, reads: Reads) -> dict[str, Any]:
    """The manifest with only the fields that are read; a value where a path cannot go deeper stays as it is."""
    seen: dict[str, Any] = {}
    for name, deeper in reads:
        value = manifest.get(name)
        if value is None:  # Lua knows no null: it is as if it were missing
            continue
        if deeper is None:
            seen[name] = value
        elif type(value) is dict:
            seen[name] = project(value, deeper) if deeper else {}
        elif type(value) is list and not deeper:
            seen[name] = []
        else:
            seen[name] = value
    return seen
