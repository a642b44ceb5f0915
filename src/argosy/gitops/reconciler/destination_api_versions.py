"""The API versions of a destination cluster, for plug-ins: the build variable KUBE_API_VERSIONS.

In: the build settings, the kinds of the cluster. Out: the settings with the versions. Never: asks the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from argosy.gitops.render import BuildSettings
from argosy.kube.client import Catalog


@dataclass
class DestinationBuildSettings:
    """Keeps the last result: the same object lets the render cache skip its digest."""

    _last: tuple[BuildSettings, Catalog, BuildSettings] | None = None

    def find(self, build: BuildSettings, kinds: Catalog) -> BuildSettings:
        if self._last is None or self._last[0] is not build or self._last[1] is not kinds:
            self._last = build, kinds, replace(build, cluster_api_versions=list_api_versions(kinds))
        return self._last[2]


def list_api_versions(kinds: Catalog) -> tuple[str, ...]:
    """argo: `v1` and `v1/ConfigMap`, `apps/v1` and `apps/v1/Deployment`: of kinds that can be listed and watched."""
    names: set[str] = set()
    for (group, kind), info in kinds.items():
        if {"list", "watch"} <= set(info.verbs):
            for version in info.versions or (info.version,):
                group_version = f"{group}/{version}" if group else version
                names |= {group_version, f"{group_version}/{kind}"}
    return tuple(sorted(names))
