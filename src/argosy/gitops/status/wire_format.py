"""Small parts that several fields of a status are made of.

In: values. Out: JSON data. Never: a null, which a merge patch could not write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from argosy.kube.names import ResourceKey


def given(**fields: Any) -> dict[str, Any]:
    """The fields that say something. argo: what is empty, false or zero is left out."""
    return {name: value for name, value in fields.items() if value}


def key_wire(key: ResourceKey) -> dict[str, str]:
    """argo: every part is there, also an empty one."""
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "name": key.name}


def sources_wire(sources: Sequence[Mapping[str, Any]], *, are_many: bool) -> dict[str, Any]:
    """`source`, or `sources` where the application is written so."""
    if are_many:
        return {"sources": [dict(each) for each in sources]}
    return {"source": dict(sources[0])} if sources else {}


def synced_wire(sources: Sequence[Mapping[str, Any]], *, are_many: bool) -> dict[str, Any]:
    """The same of what was compared or synced. argo: there an empty source stands beside many."""
    written = sources_wire(sources, are_many=are_many)
    return {"source": {"repoURL": ""}, **written} if are_many and sources else written


def mapping(value: Any) -> Mapping[str, Any]:
    """What was written by others may have any shape."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
