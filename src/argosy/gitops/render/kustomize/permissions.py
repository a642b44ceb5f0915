"""What a build may do beyond reading its own folders. In, out: values. Never: decided here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class Permits(Protocol):
    """What a build wants to know of the installation's settings."""

    @property
    def reads_anywhere(self) -> bool:
        """May files be outside of the folder of the kustomization that names them? Never outside of the repository."""

    @property
    def enables_helm(self) -> bool: ...

    @property
    def kube_version(self) -> str: ...

    @property
    def api_versions(self) -> Sequence[str]: ...


class GivenPermits(NamedTuple):
    """Implements `Permits`."""

    reads_anywhere: bool = False
    enables_helm: bool = False
    kube_version: str = ""
    api_versions: Sequence[str] = ()


def for_cluster(permits: Permits, kube_version: str, api_versions: Sequence[str]) -> Permits:
    """The same, with what an Application says of its cluster."""
    return GivenPermits(
        reads_anywhere=permits.reads_anywhere,
        enables_helm=permits.enables_helm,
        kube_version=kube_version or permits.kube_version,
        api_versions=api_versions or permits.api_versions,
    )


NOTHING: Final[Permits] = GivenPermits()
