"""Where an installation's settings and Applications are.

In: a cluster. Out: a namespace. Never: creates one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from argosy.cluster import ClusterReader
from argosy.model.errors import ClusterError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.runtime.member_leases import LABELS
from argosy.setup.installing.words import CONTROL

ARGOCD: Final = GroupKind("argoproj.io", "ArgoCD")
NAMESPACE: Final = GroupKind("", "Namespace")
LEASES: Final = GroupKind("coordination.k8s.io", "Lease")
USUAL: Final = "argocd"
LEASE: Final = "argosy-application-controller"  # held by the engine that delivers


async def control_namespace(cluster: ClusterReader) -> str:
    """Where settings are: with an ArgoCD resource, where argosy is installed, else where they usually are."""
    if found := await _asked(cluster, ARGOCD):
        return str(found[0]["metadata"]["namespace"])
    if found := await _asked(cluster, NAMESPACE, f"{CONTROL}=true"):
        return str(found[0]["metadata"]["name"])
    return USUAL


async def _asked(cluster: ClusterReader, kind: GroupKind, labels: str = "") -> Sequence[Manifest]:
    """Nothing where it is not served, or may not be seen."""
    try:
        return (await cluster.list(kind, labels=labels)).items
    except ClusterError:
        return ()


async def has_engine(cluster: ClusterReader, namespace: str) -> bool:
    """Whether an engine of argosy holds the right to deliver there, alone or with others."""
    lease = await cluster.get(ResourceKey(*LEASES, namespace, LEASE))
    return bool(held((lease,))) or bool(await members_of(cluster, namespace))


async def members_of(cluster: ClusterReader, namespace: str) -> list[Manifest]:
    """Leases of engines that share the work there; none where that may not be seen."""
    try:
        return held((await cluster.list(LEASES, namespace=namespace, labels=LABELS)).items)
    except ClusterError:
        return []


def held(leases: Iterable[Manifest | None]) -> list[Manifest]:
    """Those that somebody holds: whoever stops gives the Lease back, and it stays there without a holder."""
    return [each for each in leases if each and (each.get("spec") or {}).get("holderIdentity")]
