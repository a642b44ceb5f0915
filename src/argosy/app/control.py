"""Where an installation's settings and Applications are.

In: a cluster. Out: a namespace. Never: creates one.
"""

from __future__ import annotations

from typing import Final

from argosy.cluster import ClusterReader
from argosy.model.errors import ClusterError
from argosy.model.names import GroupKind

ARGOCD: Final = GroupKind("argoproj.io", "ArgoCD")
USUAL: Final = "argocd"


async def control_namespace(cluster: ClusterReader) -> str:
    """Where Argo CD's settings are: with an ArgoCD resource where it is, else where it usually is."""
    try:
        found = (await cluster.list(ARGOCD)).items
    except ClusterError:
        found = ()
    return str(found[0]["metadata"]["namespace"]) if found else USUAL
