"""Resolves names that a Kustomize prefix or suffix changed.

In: an object and a name from one of its fields. Out: the name after the change. Never: guesses: the object's own name
must have the same prefix or suffix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.gitops.analysis.repository import Item

_ENVIRONMENTS: Final = frozenset({"dev", "development", "test", "qa", "uat", "stage", "staging", "prod", "production"})


def renamed(item: Item, name: str, known: Iterable[str]) -> str:
    """Return the known name that is the given one plus the object's own affix; empty if none or several match."""
    names = list(known)
    if not name or name in names:
        return ""
    found = [each for each in names if _has_same_affix(item.key.name, name, each)]
    return found[0] if len(found) == 1 else ""


def _has_same_affix(own: str, name: str, near: str) -> bool:
    head, _, rest = name.partition("-")
    other, _, same = near.partition("-")
    if rest and rest == same and {head, other} <= _ENVIRONMENTS:
        return own.startswith(f"{other}-")  # copied from another environment
    if near.endswith(name) and own.startswith(near.removesuffix(name)):
        return True
    return near.startswith(name) and own.endswith(near.removeprefix(name))
