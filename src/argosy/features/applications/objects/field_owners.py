"""Field managers of a live object, field by field.

In: a masked live manifest. Out: rows. Never: a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import PatchError
from argosy.features.applications.diff.page_values import render_value
from argosy.gitops.diff.differences import find_owner
from argosy.kube.objects import Manifest
from argosy.kube.patch.managed_fields import read_managers

MAX_FIELDS: Final = 1000  # fields
SYSTEM_METADATA_FIELDS: Final = (
    "managedFields",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "selfLink",
)
PathToken = str | int


@dataclass(frozen=True, slots=True)
class FieldOwner:
    path: str
    value: str
    manager: str = ""
    operation: str = ""
    at: str = ""


def list_field_owners(manifest: Manifest, live: Manifest) -> tuple[FieldOwner, ...]:
    """`manifest` is the masked form of `live`."""
    try:
        managers = read_managers(live)
    except PatchError:
        managers = []
    rows = []
    for tokens, value in _list_leaves(manifest, ()):
        if tokens[:1] in (("apiVersion",), ("kind",)) or (
            tokens[0] == "metadata" and tokens[1] in SYSTEM_METADATA_FIELDS
        ):
            continue
        owner = find_owner(tokens, live, managers)
        row = FieldOwner(_render_path(tokens), render_value(value))
        if owner is not None:
            subresource_text = f" ({owner.subresource})" if owner.subresource else ""
            row = FieldOwner(
                _render_path(tokens),
                render_value(value),
                f"{owner.name}{subresource_text}",
                owner.operation,
                owner.time,
            )
        rows.append(row)
        if len(rows) >= MAX_FIELDS:
            break
    return tuple(rows)


def _list_leaves(value: Any, tokens: tuple[PathToken, ...]) -> Iterator[tuple[tuple[PathToken, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for name in value:
            yield from _list_leaves(value[name], (*tokens, str(name)))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _list_leaves(item, (*tokens, index))
    else:
        yield tokens, value


def _render_path(tokens: tuple[PathToken, ...]) -> str:
    path = ""
    for token in tokens:
        path += f"[{token}]" if isinstance(token, int) else f".{token}"
    return path
