"""Compares the images and models of two environments.

In: the contents of two environments. Out: VersionComparison: equal kinds and differences. Never: treats two models as
equal only because a promotion would change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.features.promote.classified_manifest_fields import (
    VERSION_KINDS,
    EnvironmentContents,
    FieldAddress,
    FieldKind,
)
from argosy.features.promote.promotion_changes import rename_matching_owners

CLAIM_SCHEME: Final = "pvc://"
DIGEST_MARK: Final = "@sha256:"


@dataclass(frozen=True)
class VersionDifference:
    kind: FieldKind
    address: FieldAddress
    source: Any  # None: only the target has it
    target: Any  # None: only the source has it
    is_unknown: bool = False  # equal addresses that resolve to different volumes


@dataclass(frozen=True)
class VersionComparison:
    same: tuple[FieldKind, ...]  # kinds that both have with equal values
    differences: tuple[VersionDifference, ...]


def compare_versions(
    source: EnvironmentContents, target: EnvironmentContents, *, shares_volumes: bool = False
) -> VersionComparison:
    """Compare images and models; parameters only if neither side has any, because they differ on purpose.

    `shares_volumes`: both environments are in one namespace, so equal claim names are the same volume.
    """
    target = rename_matching_owners(source, target)
    kinds = [kind for kind in VERSION_KINDS if source.select_values(kind) or target.select_values(kind)]
    differences = [
        difference for kind in kinds for difference in _list_differences(kind, source, target, shares_volumes)
    ]
    if not kinds:
        is_same = source.select_values(FieldKind.PARAMETER) == target.select_values(FieldKind.PARAMETER)
        return VersionComparison((FieldKind.PARAMETER,) if is_same else (), ())
    differing = {difference.kind for difference in differences}
    return VersionComparison(tuple(kind for kind in kinds if kind not in differing), tuple(differences))


def _list_differences(
    kind: FieldKind, source: EnvironmentContents, target: EnvironmentContents, shares_volumes: bool
) -> list[VersionDifference]:
    source_values, target_values = source.select_values(kind), target.select_values(kind)
    differences = []
    for address in sorted({*source_values, *target_values}):
        source_value, target_value = source_values.get(address), target_values.get(address)
        if not _is_same_version(source_value, target_value):
            differences.append(VersionDifference(kind, address, source_value, target_value))
        elif not shares_volumes and _is_namespace_local(address, source_value):
            differences.append(VersionDifference(kind, address, source_value, target_value, is_unknown=True))
    return differences


def _is_same_version(version: Any, other: Any) -> bool:
    if version == other:
        return True
    digests = [str(item).partition(DIGEST_MARK)[2] for item in (version, other)]
    return bool(digests[0]) and digests[0] == digests[1]


def _is_namespace_local(address: FieldAddress, value: Any) -> bool:
    """k8s: a PersistentVolumeClaim and the Secret of `storage.key` are looked up in the model's own namespace."""
    return str(value).startswith(CLAIM_SCHEME) or address.path.endswith((".storage.path", ".storage.key"))
