"""Resolves the ports that a Pod process may connect to besides the cluster's API.

In: a Pod, the ConfigMap argosy-cm. Out: ports. Never: any port, unless both the Pod and the ConfigMap allow it.
"""

from __future__ import annotations

from typing import Final

from argosy.annotations import NETWORK
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.objects.allowed_ports_setting_parser import parse_ports
from argosy.kube.resource_key import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

NETWORK_SETTING: Final = "notebooks.network"


async def load_allowed_outbound_ports(pod: Manifest, cluster: Cluster) -> tuple[int, ...]:
    if get_annotation(pod, NETWORK) != "on":
        return ()
    for namespace in CONTROL_NAMESPACES:
        config_map = await cluster.get(ResourceKey(*CONFIG_MAP, namespace, "argosy-cm"))
        if config_map is not None:
            return parse_ports(str((config_map.get("data") or {}).get(NETWORK_SETTING) or "")) or ()
    return ()
