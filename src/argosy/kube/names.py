"""Names of things in a cluster: what kind, and which one."""

from __future__ import annotations

from typing import Final, NamedTuple

# Where Argo CD, OpenShift GitOps and argosy keep Applications and settings, unless an installation says otherwise.
CONTROL_NAMESPACES: Final = ("argocd", "openshift-gitops", "argosy")


class GroupKind(NamedTuple):
    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class ResourceKey(NamedTuple):
    """One manifest in one cluster. The version is no part of its identity."""

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
    """`apps/v1` is group `apps`, version `v1`; `v1` is the core group, whose name is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


def join_api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
