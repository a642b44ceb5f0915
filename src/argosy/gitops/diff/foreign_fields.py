"""Lists fields that other managers added to a live object. They are no drift, but users ask where they come from.

In: a pair. Out: fields that only live has, each with its manager. Never: metadata, status, a Secret, or fields of
managers that also wrote desired fields: those are defaults, or left over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.errors import PatchError
from argosy.gitops.application.step_results import Difference, Pair
from argosy.gitops.diff.differences import owner_of
from argosy.kube.objects import Manifest
from argosy.kube.patch.json_pointer import format_tokens
from argosy.kube.patch.managed_fields import managers_of

NOT_ASKED_FOR: Final = ("apiVersion", "kind", "metadata", "status")


def additions(pair: Pair) -> list[Difference]:
    """Return the added fields in the order of their paths; none for a Secret."""
    desired, live = pair.desired, pair.live
    if desired is None or live is None or pair.key.kind == "Secret":
        return []
    try:
        managers = [each for each in managers_of(live) if not each.subresource]
    except PatchError:
        return []
    appliers = {owner.name for tokens in _asked(desired, ()) if (owner := owner_of(tokens, live, managers))}
    others = [each for each in managers if each.name not in appliers]
    found = []
    for tokens, value in _added(desired, live, ()):
        if owner := owner_of(tokens, live, others):
            found.append(Difference(format_tokens(tokens), None, value, False, True, owner.name, owner.time))
    return found


def _asked(desired: Manifest, at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of desired fields; a list is one path."""
    for name, value in desired.items():
        if not at and name in NOT_ASKED_FOR:
            continue
        if isinstance(value, dict) and value:
            yield from _asked(value, (*at, name))
        else:
            yield (*at, name)


def _added(desired: Manifest, live: Manifest, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name in sorted(live):
        if not at and name in NOT_ASKED_FOR:
            continue
        if name not in desired:
            yield (*at, name), live[name]
        elif isinstance(desired[name], dict) and isinstance(live[name], dict):
            yield from _added(desired[name], live[name], (*at, name))
