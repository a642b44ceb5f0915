"""Decides which live objects a sync may delete. Every deletion is checked here.

In: facts about one live object. Out: why it must stay; empty if it may be deleted. Never: guesses: an unknown fact is a
reason to keep it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MASS_PRUNE_SHARE: Final = 0.5
MASS_PRUNE_COUNT: Final = 10


@dataclass(frozen=True, slots=True)
class PruneCandidate:
    """The facts about a live object that is no longer in Git."""

    owner: str  # the Application in its tracking mark; empty for none
    is_self_referenced: bool  # the tracking mark names this object and is not a copy
    is_desired_state_complete: bool  # all desired manifests of the revision are known
    is_in_destination: bool  # it is in a cluster and namespace that the project permits
    is_kind_served: bool = True  # its kind is served; otherwise it is unknown whether its key has a namespace
    refusal: str = ""  # the project's reason against this kind
    is_excluded: bool = False  # settings exclude its kind
    owner_reference: str = ""  # its owner, from ownerReferences
    options: frozenset[str] = frozenset()  # sync options of the Application and of the object


def find_reason_to_keep(candidate: PruneCandidate, instance: str) -> str:
    """Return why a sync must not delete the object; empty if it may."""
    if reason := find_foreign_owner(candidate.owner, instance, is_self_referenced=candidate.is_self_referenced):
        return reason
    if not candidate.is_desired_state_complete:
        return "the desired manifests are not completely known"
    if not candidate.is_kind_served:
        return "its kind is not served at the moment, so it is unknown whether Git has it"
    if not candidate.is_in_destination:
        return "it is outside the destinations of this application"
    if candidate.is_excluded:
        return "settings exclude its kind"
    if candidate.refusal:
        return candidate.refusal
    if candidate.owner_reference:
        return f"{candidate.owner_reference} owns it"
    if "Prune=false" in candidate.options:
        return "ignored (no prune)"  # argo: its words
    return ""


def find_foreign_owner(owner: str, instance: str, *, is_self_referenced: bool) -> str:
    """Return why a live object does not belong to the Application; empty if it does."""
    if not instance or owner != instance:
        return f"it belongs to {owner or 'no application'}, not to this application"
    return "" if is_self_referenced else "its tracking ID names another object, from which it was copied"


def is_mass_prune(deletions: int, managed_count: int) -> bool:
    """True if an automated sync must ask before so many deletions."""
    return deletions > MASS_PRUNE_COUNT and deletions > managed_count * MASS_PRUNE_SHARE
