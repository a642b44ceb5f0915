"""The place where the health checks of one Argo CD are kept: read it, and write checks into it.

In: an Installation and checks. Out: what is there, and whether something was written. Never: writes what is there
already; writes over what somebody else changed meanwhile.
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
    """An ArgoCD resource, or a plain argocd-cm, as it was when it was read."""

    installation: Installation
    live: Manifest

    @property
    def entries(self) -> Sequence[Any] | None:
        """The list of an ArgoCD resource; None where it has none."""
        spec = self.live.get("spec") or {}
        entries = spec.get(FIELD)
        return entries if isinstance(entries, list) and entries else None

    @property
    def data(self) -> Mapping[str, str]:
        """Of a plain argocd-cm; of a resource, the keys that its operator copies over everything else."""
        if self.installation.is_operated:
            extra = (self.live.get("spec") or {}).get("extraConfig")
            return extra if isinstance(extra, dict) else {}
        return self.live.get("data") or {}

    @property
    def scripts(self) -> dict[GroupKind, str]:
        """The checks that are there, by kind."""
        if self.installation.is_operated:
            return scripts_of_entries(self.entries or ())
        return scripts_of_data(self.data)

    def overruled(self, wanted: Sequence[Check]) -> list[Check]:
        """Those that cannot arrive: the operator writes another script of extraConfig over them."""
        if not self.installation.is_operated:
            return []
        return [check for check in wanted if self.data.get(check.key, check.script) != check.script]

    def patch(self, wanted: Sequence[Check]) -> Manifest | None:
        """None where nothing would change."""
        version = {"resourceVersion": self.live["metadata"]["resourceVersion"]}
        if self.installation.is_operated:
            # argo: a patch replaces the list, so the whole of it is sent; the version guards what others add meanwhile
            entries = merged(self.entries or (), wanted)
            same = entries == list(self.entries or ())
            return None if same else {"metadata": version, "spec": {FIELD: entries}}
        missing = missing_from(self.data, wanted)
        return {"metadata": version, "data": {check.key: check.script for check in missing}} if missing else None


def flags_to(installation: Installation, kinds: Collection[GroupKind]) -> str:
    """What leads a command to the same Argo CD and kinds again; nothing where that is what happens anyway."""
    where = f" --namespace {installation.namespace}" if installation.namespace not in (USUAL, PLAIN_NAMESPACE) else ""
    which = f" --name {installation.name}" if installation.is_operated and installation.name != USUAL else ""
    if set(kinds) in ({INFERENCE_SERVICE}, set(USUAL_KINDS)):
        return where + which
    # a kind of the core may have the name of another's: a Service
    return f"{where}{which} --kinds {','.join(str(of) if of.group else f'core/{of.kind}' for of in kinds)}"


async def read_place(cluster: ClusterReader, installation: Installation) -> Place:
    live = await cluster.get(installation.key)
    if live is None:
        raise NotInstalled(f"{installation.key} was deleted just now; run the command again")
    return Place(installation, live)


async def write_checks(cluster: Cluster, place: Place, wanted: Sequence[Check]) -> bool:
    """Whether there was something to write. What others write meanwhile is kept."""
    for _ in range(ATTEMPTS):
        patch = place.patch(wanted)
        if patch is None:
            return False
        try:
            await cluster.patch(place.installation.key, patch)
            return True
        except Conflict:
            place = await read_place(cluster, place.installation)
    what = f"was changed by others {ATTEMPTS} times in a row"
    raise UserError(f"{what}; find out by whom, then run the command again", where=str(place.installation.key))
