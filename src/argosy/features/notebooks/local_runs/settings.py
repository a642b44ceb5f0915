"""Limits of an installation for local notebook runs.

In: the ConfigMap argosy-cm. Out: numbers. Never: fails on an invalid setting; its default is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from argosy.errors import UserError
from argosy.kube.client import Cluster
from argosy.kube.names import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.objects.port_list import parse_ports
from argosy.kube.schema import quantity

ARGOSY_CM: Final = "argosy-cm"
PARALLEL, MEMORY, NETWORK, STORAGE = (f"notebooks.{name}" for name in ("parallel", "memory", "network", "storage"))
LEAST_MEMORY: Final = 256 << 20  # three times what a bare kernel needs


@dataclass(frozen=True)
class Allowed:
    parallel: int = 2
    memory: int = 2 << 30
    storage: int = 1 << 30
    ports: tuple[int, ...] = ()  # reachable ports, if a job requests network access; empty: no network


def read(data: Mapping[str, str]) -> Allowed:
    usual = Allowed()
    parallel = data.get(PARALLEL, "").strip()
    return Allowed(
        parallel=max(1, int(parallel)) if re.fullmatch(r"[0-9]{1,4}", parallel) else usual.parallel,
        memory=max(_bytes(data.get(MEMORY, ""), usual.memory), LEAST_MEMORY),
        storage=max(_bytes(data.get(STORAGE, ""), usual.storage), 1 << 20),
        ports=parse_ports(data.get(NETWORK, "")) or (),
    )


async def data_of(name: str, cluster: Cluster) -> Mapping[str, str]:
    """Data of a ConfigMap in a control namespace; empty if it does not exist."""
    for namespace in CONTROL_NAMESPACES:
        found = await cluster.get(ResourceKey("", "ConfigMap", namespace, name))
        if found is not None:
            return {str(key): str(value) for key, value in (found.get("data") or {}).items()}
    return {}


def _bytes(text: str, usual: int) -> int:
    try:
        return int(quantity.parse(text)) if text.strip() else usual
    except (UserError, ValueError):
        return usual
