"""What may be deleted. Every deletion of a sync asks here first; there is no second place.

In: facts about one live manifest. Out: why it must stay; empty where it may go. Never: a guess: what is not known
speaks against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MASS_SHARE: Final = 0.5
MASS_COUNT: Final = 10


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is known of a live manifest that Git no longer asks for."""

    owner: str  # the application that its tracking names; empty for none
    is_self_referenced: bool  # its tracking names this very manifest, and is no copy of another's
    is_rendered_whole: bool  # the desired manifests are all there are at the resolved revision
    is_in_destination: bool  # it lives in the cluster, and where it has one in a namespace, that the project allows
    is_served: bool = True  # its kind; else nobody knows under which key Git asks for it: with a namespace, or without
    refusal: str = ""  # of the project, for this kind
    is_excluded: bool = False  # by settings: such kinds are not looked at
    controller: str = ""  # who else made it, by ownerReferences
    options: frozenset[str] = frozenset()  # the application's and its own


def may_delete(candidate: Candidate, instance: str) -> str:
    """Why a sync of the application must not delete it; empty where it may."""
    if not instance or candidate.owner != instance:
        return f"it belongs to {candidate.owner or 'nobody'}, not to this application"
    if not candidate.is_self_referenced:
        return "its tracking names another manifest: it was copied from that one"
    if not candidate.is_rendered_whole:
        return "what Git asks for is not known in full"
    if not candidate.is_served:
        return "its kind is not served at the moment, so nobody knows whether Git asks for it"
    if not candidate.is_in_destination:
        return "it is not where this application may deliver to"
    if candidate.is_excluded:
        return "settings exclude its kind"
    if candidate.refusal:
        return candidate.refusal
    if candidate.controller:
        return f"{candidate.controller} made it and looks after it"
    if "Prune=false" in candidate.options:
        return "ignored (no prune)"  # argo: its words
    return ""


def is_mass(deletions: int, managed: int) -> bool:
    """Whether so many deletions of an automated sync are a reason to ask first."""
    return deletions > MASS_COUNT and deletions > managed * MASS_SHARE
