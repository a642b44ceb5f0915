"""Permissions of a build beyond reading its own folders. In, out: values. Never: decides them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class Permits(Protocol):
    """The settings of the installation that a build needs."""

    @property
    def reads_anywhere(self) -> bool:
        """True if a kustomization may read files outside its folder; never files outside the repository."""

    @property
    def enables_helm(self) -> bool: ...

    @property
    def kube_version(self) -> str: ...

    @property
    def api_versions(self) -> Sequence[str]: ...


class GivenPermits(NamedTuple):
    """Implements `BuildPermissions`."""

    reads_anywhere: bool = False
    enables_helm: bool = False
    kube_version: str = ""
    api_versions: Sequence[str] = ()


def for_cluster(permits: Permits, kube_version: str, api_versions: Sequence[str]) -> Permits:
    """Return the permissions with the Application's Kubernetes version and API versions."""
    return GivenPermits(
        reads_anywhere=permits.reads_anywhere,
        enables_helm=permits.enables_helm,
        kube_version=kube_version or permits.kube_version,
        api_versions=api_versions or permits.api_versions,
    )


NOTHING: Final[Permits] = GivenPermits()
