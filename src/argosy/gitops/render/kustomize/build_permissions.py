"""Permissions of a build beyond reading its own folders. In, out: values. Never: decides them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class BuildPermissions(Protocol):
    """The settings of the installation that a build needs."""

    @property
    def can_read_outside_folder(self) -> bool:
        """True if a kustomization may read files outside its folder; never files outside the repository."""

    @property
    def is_helm_enabled(self) -> bool: ...

    @property
    def kube_version(self) -> str: ...

    @property
    def api_versions(self) -> Sequence[str]: ...


class FixedPermissions(NamedTuple):
    """Implements `BuildPermissions`."""

    can_read_outside_folder: bool = False
    is_helm_enabled: bool = False
    kube_version: str = ""
    api_versions: Sequence[str] = ()


def set_cluster_versions(
    permissions: BuildPermissions, kube_version: str, api_versions: Sequence[str]
) -> BuildPermissions:
    """Return the permissions with the Application's Kubernetes version and API versions."""
    return FixedPermissions(
        can_read_outside_folder=permissions.can_read_outside_folder,
        is_helm_enabled=permissions.is_helm_enabled,
        kube_version=kube_version or permissions.kube_version,
        api_versions=api_versions or permissions.api_versions,
    )


NO_PERMISSIONS: Final[BuildPermissions] = FixedPermissions()
