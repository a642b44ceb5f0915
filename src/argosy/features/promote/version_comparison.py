"""Compares the images and models of two environments.

In: the contents of two environments. Out: VersionComparison: equal kinds and differences. Never: treats two models as
equal only because a promotion would change nothing.
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
    is_unknown: bool = False  # equal addresses that resolve to different volumes


@dataclass(frozen=True)
class VersionComparison:
    same: tuple[Kind, ...]  # kinds that both have with equal values
    differences: tuple[VersionDifference, ...]


def compare_versions(source: Contents, target: Contents, *, shares_volumes: bool = False) -> VersionComparison:
    """Compare images and models; parameters only if neither side has any, because they differ on purpose.

    `shares_volumes`: both environments are in one namespace, so equal claim names are the same volume.
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
    """k8s: a PersistentVolumeClaim and the Secret of `storage.key` are looked up in the model's own namespace."""
    return str(value).startswith(CLAIM_SCHEME) or at.path.endswith((".storage.path", ".storage.key"))
