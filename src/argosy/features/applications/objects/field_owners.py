"""Field managers of a live object, field by field.

In: a masked live manifest. Out: rows. Never: a value of a Secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import PatchError
from argosy.features.applications.diff.field_changes import value_text
from argosy.gitops.diff.differences import owner_of
from argosy.kube.objects import Manifest
from argosy.kube.patch.managed_fields import managers_of

MOST: Final = 1000  # fields
PLAIN: Final = ("managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink")
Token = str | int


@dataclass(frozen=True, slots=True)
class Owned:
    path: str
    value: str
    manager: str = ""
    operation: str = ""
    at: str = ""


def owners(manifest: Manifest, live: Manifest) -> tuple[Owned, ...]:
    """`manifest` is the masked form of `live`."""
    try:
        managers = managers_of(live)
    except PatchError:
        managers = []
    found = []
    for tokens, value in _leaves(manifest, ()):
        if tokens[:1] in (("apiVersion",), ("kind",)) or (tokens[0] == "metadata" and tokens[1] in PLAIN):
            continue
        owner = owner_of(tokens, live, managers)
        made = Owned(_path(tokens), value_text(value))
        if owner is not None:
            sub = f" ({owner.subresource})" if owner.subresource else ""
            made = Owned(_path(tokens), value_text(value), f"{owner.name}{sub}", owner.operation, owner.time)
        found.append(made)
        if len(found) >= MOST:
            break
    return tuple(found)


def _leaves(value: Any, at: tuple[Token, ...]) -> Iterator[tuple[tuple[Token, ...], Any]]:
    if isinstance(value, Mapping) and value:
        for name in value:
            yield from _leaves(value[name], (*at, str(name)))
    elif isinstance(value, list) and value:
        for place, each in enumerate(value):
            yield from _leaves(each, (*at, place))
    else:
        yield at, value


def _path(tokens: tuple[Token, ...]) -> str:
    made = ""
    for token in tokens:
        made += f"[{token}]" if isinstance(token, int) else f".{token}"
    return made
