"""Reduces a manifest to the fields that a script reads.

In: a manifest, the fields that are read. Out: the manifest with only these fields. Never: parses a script: the parser
takes long to import.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from argosy.kube.objects import Manifest

# Each field with the fields read below it: None means all of them, an empty tuple only its existence.
Reads: TypeAlias = "tuple[tuple[str, Reads | None], ...]"


def project(manifest: Manifest, reads: Reads) -> dict[str, Any]:
    """Return the manifest with only the fields that are read; a scalar in the middle of a path is kept."""
    seen: dict[str, Any] = {}
    for name, deeper in reads:
        value = manifest.get(name)
        if value is None:  # Lua has no null: the field counts as missing
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
