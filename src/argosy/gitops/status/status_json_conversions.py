"""Shared parts of status fields.

In: values. Out: JSON data. Never: a null, which a merge patch cannot write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.resource_key import ResourceKey


def omit_empty(**fields: Any) -> dict[str, Any]:
    """Return the fields that are set. argo: empty, false and zero values are omitted."""
    return {name: value for name, value in fields.items() if value}


def key_to_wire(key: ResourceKey) -> dict[str, str]:
    """argo: all parts are written, even empty ones."""
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}


def sources_to_wire(sources: Sequence[Mapping[str, Any]], *, are_many: bool) -> dict[str, Any]:
    """Return `source`, or `sources` if the Application uses it."""
    if are_many:
        return {"sources": [dict(source) for source in sources]}
    return {"source": dict(sources[0])} if sources else {}


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a map, else an empty one: other writers may store any type."""
    return value if isinstance(value, Mapping) else {}


def as_mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
