"""Reduces a manifest to the fields that a script reads.

In: a manifest, the fields that are read. Out: the manifest with only these fields. Never: parses a script: the parser
takes long to import.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from argosy.kube.objects import Manifest

# Each field with the fields read below it: None means all of them, an empty tuple only its existence.
FieldReads: TypeAlias = "tuple[tuple[str, FieldReads | None], ...]"


def project_manifest(manifest: Manifest, reads: FieldReads) -> dict[str, Any]:
    """Return the manifest with only the fields that are read; a scalar in the middle of a path is kept."""
    projected: dict[str, Any] = {}
    for name, nested_reads in reads:
        value = manifest.get(name)
        if value is None:  # Lua has no null: the field counts as missing
            continue
        if nested_reads is None:
            projected[name] = value
        elif type(value) is dict:
            projected[name] = project_manifest(value, nested_reads) if nested_reads else {}
        elif type(value) is list and not nested_reads:
            projected[name] = []
        else:
            projected[name] = value
    return projected
