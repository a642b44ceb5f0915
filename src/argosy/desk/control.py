"""Where an installation's settings and Applications are.

In: a cluster. Out: a namespace. Never: creates one.
"""

from __future__ import annotations

from typing import Final

from argosy.cluster import ClusterReader
from argosy.model.errors import ClusterError
from argosy.model.names import GroupKind, ResourceKey

ARGOCD: Final = GroupKind("argoproj.io", "ArgoCD")
USUAL: Final = "argocd"
LEASE: Final = "argosy-application-controller"  # held by the engine that delivers


async def control_namespace(cluster: ClusterReader) -> str:
    """Where Argo CD's settings are: with an ArgoCD resource where it is, else where it usually is."""
    try:
        found = (await cluster.list(ARGOCD)).items
    except ClusterError:
        found = ()
    return str(found[0]["metadata"]["namespace"]) if found else USUAL


async def has_engine(cluster: ClusterReader, namespace: str) -> bool:
    """Whether an engine of argosy holds the right to deliver there."""
    lease = await cluster.get(ResourceKey("coordination.k8s.io", "Lease", namespace, LEASE))
    return bool(((lease or {}).get("spec") or {}).get("holderIdentity"))
