"""Compares the images and models of two environments.

In: the contents of two environments. Out: which kinds are the same, and what differs. Never: calls two models the same
because nothing would be carried from one to the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.features.promote.moves import match_owners
from argosy.features.promote.releases import VERSIONS, At, Contents, Kind

CLAIM_SCHEME: Final = "pvc://"
DIGEST_MARK: Final = "@sha256:"


@dataclass(frozen=True)
class VersionDifference:
    kind: Kind
    at: At
    source: Any  # None: only the target has it
    target: Any  # None: only the source has it
    is_unknown: bool = False  # the addresses are equal, and lead to different places


@dataclass(frozen=True)
class VersionComparison:
    same: tuple[Kind, ...]  # kinds that both have, and that are equal
    differences: tuple[VersionDifference, ...]


def compare_versions(source: Contents, target: Contents, *, shares_volumes: bool = False) -> VersionComparison:
    """`shares_volumes`: both are in one namespace, so that a claim of one is that of the other.

    Parameters count only where neither has images or models: environments differ in them on purpose.
    """
    target = match_owners(source, target)
    kinds = [kind for kind in VERSIONS if source.of(kind) or target.of(kind)]
    differences = [each for kind in kinds for each in _differences(kind, source, target, shares_volumes)]
    if not kinds:
        is_same = source.of(Kind.PARAMETER) == target.of(Kind.PARAMETER)
        return VersionComparison((Kind.PARAMETER,) if is_same else (), ())
    differing = {each.kind for each in differences}
    return VersionComparison(tuple(kind for kind in kinds if kind not in differing), tuple(differences))


def _differences(kind: Kind, source: Contents, target: Contents, shares_volumes: bool) -> list[VersionDifference]:
    there, here = source.of(kind), target.of(kind)
    found = []
    for at in sorted({*there, *here}):
        one, other = there.get(at), here.get(at)
        if not _is_same_version(one, other):
            found.append(VersionDifference(kind, at, one, other))
        elif not shares_volumes and _is_of_its_namespace(at, one):
            found.append(VersionDifference(kind, at, one, other, is_unknown=True))
    return found


def _is_same_version(one: Any, other: Any) -> bool:
    if one == other:
        return True
    digests = [str(each).partition(DIGEST_MARK)[2] for each in (one, other)]
    return bool(digests[0]) and digests[0] == digests[1]


def _is_of_its_namespace(at: At, value: Any) -> bool:
    """k8s: a claim, and the Secret that a `storage.key` names, are looked up in the model's own namespace."""
    return str(value).startswith(CLAIM_SCHEME) or at.path.endswith((".storage.path", ".storage.key"))
