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
    INFERENCE_SERVICE,
    USUAL_KINDS,
    Check,
    merged,
    missing_from,
    scripts_of_data,
    scripts_of_entries,
)
from argosy.gitops.coexistence.argocd_settings import PLAIN_NAMESPACE, USUAL, Installation, NotInstalled
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

FIELD: Final = "resourceHealthChecks"
ATTEMPTS: Final = 5


@dataclass(frozen=True)
class Place:
    """A snapshot of an ArgoCD resource, or of an argocd-cm without an operator."""

    installation: Installation
    live: Manifest

    @property
    def entries(self) -> Sequence[Any] | None:
        """The health check list of an ArgoCD resource, or None if it is missing or empty."""
        spec = self.live.get("spec") or {}
        entries = spec.get(FIELD)
        return entries if isinstance(entries, list) and entries else None

    @property
    def data(self) -> Mapping[str, str]:
        """Data of argocd-cm; for an ArgoCD resource, spec.extraConfig, which overrides all other settings."""
        if self.installation.is_operated:
            extra = (self.live.get("spec") or {}).get("extraConfig")
            return extra if isinstance(extra, dict) else {}
        return self.live.get("data") or {}

    @property
    def scripts(self) -> dict[GroupKind, str]:
        """The existing check scripts by kind."""
        if self.installation.is_operated:
            return scripts_of_entries(self.entries or ())
        return scripts_of_data(self.data)

    def overruled(self, wanted: Sequence[Check]) -> list[Check]:
        """List the checks that have no effect, because spec.extraConfig overrides them with another script."""
        if not self.installation.is_operated:
            return []
        return [check for check in wanted if self.data.get(check.key, check.script) != check.script]

    def patch(self, wanted: Sequence[Check]) -> Manifest | None:
        """Build the merge patch that adds the checks; None if nothing would change."""
        version = {"resourceVersion": self.live["metadata"]["resourceVersion"]}
        if self.installation.is_operated:
            # argo: a merge patch replaces the list, so send all of it; resourceVersion detects concurrent changes
            entries = merged(self.entries or (), wanted)
            same = entries == list(self.entries or ())
            return None if same else {"metadata": version, "spec": {FIELD: entries}}
        missing = missing_from(self.data, wanted)
        return {"metadata": version, "data": {check.key: check.script for check in missing}} if missing else None


def flags_to(installation: Installation, kinds: Collection[GroupKind]) -> str:
    """Render the flags that select this Argo CD and these kinds again; empty if the defaults do."""
    where = f" --namespace {installation.namespace}" if installation.namespace not in (USUAL, PLAIN_NAMESPACE) else ""
    which = f" --name {installation.name}" if installation.is_operated and installation.name != USUAL else ""
    if set(kinds) in ({INFERENCE_SERVICE}, set(USUAL_KINDS)):
        return where + which
    # a core kind may share its name with a kind of another group, such as Service
    return f"{where}{which} --kinds {','.join(str(of) if of.group else f'core/{of.kind}' for of in kinds)}"


async def read_place(cluster: ClusterReader, installation: Installation) -> Place:
    live = await cluster.get(installation.key)
    if live is None:
        raise NotInstalled(f"{installation.key} was deleted in the meantime; run the command again")
    return Place(installation, live)


async def write_checks(cluster: Cluster, place: Place, wanted: Sequence[Check]) -> bool:
    """Write the checks and retry on conflicts; return False if they were already there."""
    for _ in range(ATTEMPTS):
        patch = place.patch(wanted)
        if patch is None:
            return False
        try:
            await cluster.patch(place.installation.key, patch)
            return True
        except Conflict:
            place = await read_place(cluster, place.installation)
    what = f"gave up after {ATTEMPTS} write conflicts"
    raise UserError(f"{what}; find out who changes it, then run the command again", where=str(place.installation.key))
