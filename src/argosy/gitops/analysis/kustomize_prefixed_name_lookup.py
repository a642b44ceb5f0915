"""Resolves names that a Kustomize prefix or suffix changed.

In: an object and a name from one of its fields. Out: the name after the change. Never: guesses: the object's own name
must have the same prefix or suffix.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from argosy.gitops.analysis.repository_view import ManifestWithLocations

_ENVIRONMENT_PREFIXES: Final = frozenset(
    {"dev", "development", "test", "qa", "uat", "stage", "staging", "prod", "production"}
)


def find_affixed_name(item: ManifestWithLocations, name: str, known_names: Iterable[str]) -> str:
    """Return the known name that is the given one plus the object's own affix; empty if none or several match."""
    names = list(known_names)
    if not name or name in names:
        return ""
    matches = [candidate for candidate in names if _has_same_affix(item.key.name, name, candidate)]
    return matches[0] if len(matches) == 1 else ""


def _has_same_affix(own_name: str, name: str, candidate: str) -> bool:
    prefix, _, name_tail = name.partition("-")
    candidate_prefix, _, candidate_tail = candidate.partition("-")
    if name_tail and name_tail == candidate_tail and {prefix, candidate_prefix} <= _ENVIRONMENT_PREFIXES:
        return own_name.startswith(f"{candidate_prefix}-")  # copied from another environment
    if candidate.endswith(name) and own_name.startswith(candidate.removesuffix(name)):
        return True
    return candidate.startswith(name) and own_name.endswith(candidate.removeprefix(name))
