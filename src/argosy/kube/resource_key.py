"""Identities of Kubernetes objects: group and kind, resource key, apiVersion."""

from __future__ import annotations

from typing import Final, NamedTuple

# Default namespaces of Argo CD, OpenShift GitOps and argosy for Applications and settings.
CONTROL_NAMESPACES: Final = ("argocd", "openshift-gitops", "argosy")


class GroupKind(NamedTuple):
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class ResourceKey(NamedTuple):
    """Identity of one object in one cluster. The version is not part of it."""

    group: str
    kind: str
    namespace: str
    name: str

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return "/".join(str(part) for part in self if part)


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split `apps/v1` into group `apps` and version `v1`; the group of `v1` (core) is the empty string."""
    group, _, version = api_version.rpartition("/")
    return group, version


def join_api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
