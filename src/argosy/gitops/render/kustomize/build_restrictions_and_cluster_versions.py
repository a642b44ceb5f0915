"""Settings for kustomize: what a build may read or run beyond its folder, and the versions of the cluster.

In, out: values. Never: reads a ConfigMap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class KustomizeSettings(Protocol):
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


class FixedKustomizeSettings(NamedTuple):
    """Implements `KustomizeSettings`."""

    can_read_outside_folder: bool = False
    is_helm_enabled: bool = False
    kube_version: str = ""
    api_versions: Sequence[str] = ()


def set_cluster_versions(
    settings: KustomizeSettings, kube_version: str, api_versions: Sequence[str]
) -> KustomizeSettings:
    """Return the settings with the Application's Kubernetes version and API versions."""
    return FixedKustomizeSettings(
        can_read_outside_folder=settings.can_read_outside_folder,
        is_helm_enabled=settings.is_helm_enabled,
        kube_version=kube_version or settings.kube_version,
        api_versions=api_versions or settings.api_versions,
    )


RESTRICTED_SETTINGS: Final[KustomizeSettings] = FixedKustomizeSettings()
