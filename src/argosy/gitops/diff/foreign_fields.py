"""Lists fields that other managers added to a live object. They are no drift, but users ask where they come from.

In: a pair. Out: fields that only live has, each with its manager. Never: metadata, status, a Secret, or fields of
managers that also wrote desired fields: those are defaults, or left over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import PatchError
from argosy.gitops.application.step_results import FieldDifference, Pair
from argosy.gitops.diff.differences import find_owner
from argosy.kube.objects import Manifest
from argosy.kube.patch.json_pointer import format_tokens
from argosy.kube.patch.managed_fields import read_managers

UNCOMPARED_FIELDS: Final = ("apiVersion", "kind", "metadata", "status")


def list_foreign_fields(pair: Pair) -> list[FieldDifference]:
    """Return the added fields in the order of their paths; none for a Secret."""
    desired, live = pair.desired, pair.live
    if desired is None or live is None or pair.key.kind == "Secret":
        return []
    try:
        managers = [manager for manager in read_managers(live) if not manager.subresource]
    except PatchError:
        return []
    appliers = {
        owner.name for tokens in _list_desired_paths(desired, ()) if (owner := find_owner(tokens, live, managers))
    }
    other_managers = [manager for manager in managers if manager.name not in appliers]
    foreign_fields = []
    for tokens, value in _list_added_fields(desired, live, ()):
        if owner := find_owner(tokens, live, other_managers):
            foreign_fields.append(
                FieldDifference(format_tokens(tokens), None, value, False, True, owner.name, owner.time)
            )
    return foreign_fields


def _list_desired_paths(desired: Manifest, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of desired fields; a list is one path."""
    for name, value in desired.items():
        if not path and name in UNCOMPARED_FIELDS:
            continue
        if isinstance(value, dict) and value:
            yield from _list_desired_paths(value, (*path, name))
        else:
            yield (*path, name)


def _list_added_fields(
    desired: Manifest, live: Manifest, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in sorted(live):
        if not path and name in UNCOMPARED_FIELDS:
            continue
        if name not in desired:
            yield (*path, name), live[name]
        elif isinstance(desired[name], dict) and isinstance(live[name], dict):
            yield from _list_added_fields(desired[name], live[name], (*path, name))
