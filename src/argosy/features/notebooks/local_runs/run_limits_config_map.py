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
from argosy.kube.objects.allowed_ports_setting_parser import parse_ports
from argosy.kube.resource_key import CONTROL_NAMESPACES, ResourceKey
from argosy.kube.schema import quantity
from argosy.kube.well_known_kinds import CONFIG_MAP

ARGOSY_CM: Final = "argosy-cm"
PARALLEL_SETTING, MEMORY_SETTING, NETWORK_SETTING, STORAGE_SETTING = (
    f"notebooks.{name}" for name in ("parallel", "memory", "network", "storage")
)
MIN_MEMORY_BYTES: Final = 256 << 20  # three times what a bare kernel needs


@dataclass(frozen=True)
class LocalRunSettings:
    max_parallel_runs: int = 2
    memory_bytes: int = 2 << 30
    storage_bytes: int = 1 << 30
    ports: tuple[int, ...] = ()  # reachable ports, if a job requests network access; empty: no network


def read_settings(data: Mapping[str, str]) -> LocalRunSettings:
    defaults = LocalRunSettings()
    parallel = data.get(PARALLEL_SETTING, "").strip()
    return LocalRunSettings(
        max_parallel_runs=max(1, int(parallel))
        if re.fullmatch(r"[0-9]{1,4}", parallel)
        else defaults.max_parallel_runs,
        memory_bytes=max(_parse_bytes(data.get(MEMORY_SETTING, ""), defaults.memory_bytes), MIN_MEMORY_BYTES),
        storage_bytes=max(_parse_bytes(data.get(STORAGE_SETTING, ""), defaults.storage_bytes), 1 << 20),
        ports=parse_ports(data.get(NETWORK_SETTING, "")) or (),
    )


async def load_config_map_data(name: str, cluster: Cluster) -> Mapping[str, str]:
    """Data of a ConfigMap in a control namespace; empty if it does not exist."""
    for namespace in CONTROL_NAMESPACES:
        config_map = await cluster.get(ResourceKey(*CONFIG_MAP, namespace, name))
        if config_map is not None:
            return {str(key): str(value) for key, value in (config_map.get("data") or {}).items()}
    return {}


def _parse_bytes(text: str, default: int) -> int:
    try:
        return int(quantity.parse(text)) if text.strip() else default
    except (UserError, ValueError):
        return default
