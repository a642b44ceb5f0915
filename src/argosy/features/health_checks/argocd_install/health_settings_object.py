"""The object that holds the health checks of one Argo CD (an ArgoCD resource or argocd-cm), and writes to it.

In: an ArgoCDInstallation and checks. Out: the existing checks, and whether a patch was sent. Never: sends a patch
without changes; overwrites a concurrent change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import Conflict, UserError
from argosy.features.health_checks.argocd_install.merge import (
    DEFAULT_KINDS,
    RequestedHealthCheck,
    list_missing_checks,
    merge_entries,
    read_scripts_from_data,
    read_scripts_from_entries,
)
from argosy.gitops.coexistence.argocd_settings_location import (
    DEFAULT_NAMESPACE,
    OPENSHIFT_GITOPS,
    ArgoCDInstallation,
    ArgoCDNotFound,
)
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

HEALTH_CHECKS_FIELD: Final = "resourceHealthChecks"
MAX_WRITE_ATTEMPTS: Final = 5


@dataclass(frozen=True)
class HealthSettings:
    """A snapshot of an ArgoCD resource, or of an argocd-cm without an operator."""

    installation: ArgoCDInstallation
    live: Manifest

    @property
    def entries(self) -> Sequence[Any] | None:
        """The health check list of an ArgoCD resource, or None if it is missing or empty."""
        spec = self.live.get("spec") or {}
        entries = spec.get(HEALTH_CHECKS_FIELD)
        return entries if isinstance(entries, list) and entries else None

    @property
    def data(self) -> Mapping[str, str]:
        """Data of argocd-cm; for an ArgoCD resource, spec.extraConfig, which overrides all other settings."""
        if self.installation.has_operator:
            extra = (self.live.get("spec") or {}).get("extraConfig")
            return extra if isinstance(extra, dict) else {}
        return self.live.get("data") or {}

    @property
    def scripts(self) -> dict[GroupKind, str]:
        """The existing check scripts by kind."""
        if self.installation.has_operator:
            return read_scripts_from_entries(self.entries or ())
        return read_scripts_from_data(self.data)

    def list_overridden_checks(self, requested_checks: Sequence[RequestedHealthCheck]) -> list[RequestedHealthCheck]:
        """List the checks that have no effect, because spec.extraConfig overrides them with another script."""
        if not self.installation.has_operator:
            return []
        return [check for check in requested_checks if self.data.get(check.key, check.script) != check.script]

    def build_patch(self, requested_checks: Sequence[RequestedHealthCheck]) -> Manifest | None:
        """Build the merge patch that adds the checks; None if nothing would change."""
        version = {"resourceVersion": self.live["metadata"]["resourceVersion"]}
        if self.installation.has_operator:
            # argo: a merge patch replaces the list, so send all of it; resourceVersion detects concurrent changes
            entries = merge_entries(self.entries or (), requested_checks)
            is_unchanged = entries == list(self.entries or ())
            return None if is_unchanged else {"metadata": version, "spec": {HEALTH_CHECKS_FIELD: entries}}
        missing_checks = list_missing_checks(self.data, requested_checks)
        return (
            {"metadata": version, "data": {check.key: check.script for check in missing_checks}}
            if missing_checks
            else None
        )


def render_target_flags(installation: ArgoCDInstallation, kinds: Collection[GroupKind]) -> str:
    """Render the flags that select this Argo CD and these kinds again; empty if the defaults do."""
    namespace_flag = (
        f" --namespace {installation.namespace}"
        if installation.namespace not in (OPENSHIFT_GITOPS, DEFAULT_NAMESPACE)
        else ""
    )
    name_flag = (
        f" --name {installation.name}" if installation.has_operator and installation.name != OPENSHIFT_GITOPS else ""
    )
    if set(kinds) in ({INFERENCE_SERVICE}, set(DEFAULT_KINDS)):
        return namespace_flag + name_flag
    # a core kind may share its name with a kind of another group, such as Service
    return (
        f"{namespace_flag}{name_flag} --kinds "
        f"{','.join(str(group_kind) if group_kind.group else f'core/{group_kind.kind}' for group_kind in kinds)}"
    )


async def load_health_settings(cluster: ClusterReader, installation: ArgoCDInstallation) -> HealthSettings:
    live = await cluster.get(installation.settings_target)
    if live is None:
        raise ArgoCDNotFound(f"{installation.settings_target} was deleted in the meantime; run the command again")
    return HealthSettings(installation, live)


async def write_checks(
    cluster: Cluster, location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck]
) -> bool:
    """Write the checks and retry on conflicts; return False if they were already there."""
    for _ in range(MAX_WRITE_ATTEMPTS):
        patch = location.build_patch(requested_checks)
        if patch is None:
            return False
        try:
            await cluster.patch(location.installation.settings_target, patch)
            return True
        except Conflict:
            location = await load_health_settings(cluster, location.installation)
    problem = f"gave up after {MAX_WRITE_ATTEMPTS} write conflicts"
    raise UserError(
        f"{problem}; find out who changes it, then run the command again",
        where=str(location.installation.settings_target),
    )
