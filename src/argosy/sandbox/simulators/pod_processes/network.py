"""Resolves the ports that a Pod process may connect to besides the cluster's API.

In: a Pod, the ConfigMap argosy-cm. Out: ports. Never: any port, unless both the Pod and the ConfigMap allow it.
"""

from __future__ import annotations

from typing import Final

from argosy.annotations import NETWORK
from argosy.kube.client import Cluster
from argosy.kube.names import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.objects import Manifest, annotation
from argosy.kube.objects.port_list import parse_ports

SETTING: Final = "notebooks.network"


async def ports_of(pod: Manifest, cluster: Cluster) -> tuple[int, ...]:
    if annotation(pod, NETWORK) != "on":
        return ()
    for namespace in CONTROL_NAMESPACES:
        found = await cluster.get(ResourceKey("", "ConfigMap", namespace, "argosy-cm"))
        if found is not None:
            return parse_ports(str((found.get("data") or {}).get(SETTING) or "")) or ()
    return ()
