"""What a Pod that runs may call besides the cluster: ports that the installation allows to who asks for them.

In: a Pod, the ConfigMap argosy-cm. Out: ports. Never: any, unless both say so.
"""

from __future__ import annotations

import re
from typing import Final

from argosy.cluster import Cluster
from argosy.model.annotations import NETWORK
from argosy.model.manifest import Manifest, annotation
from argosy.model.names import CONTROL_NAMESPACES, ResourceKey

SETTING: Final = "notebooks.network"
WEB: Final = (80, 443)


async def ports_of(pod: Manifest, cluster: Cluster) -> tuple[int, ...]:
    if annotation(pod, NETWORK) != "on":
        return ()
    for namespace in CONTROL_NAMESPACES:
        found = await cluster.get(ResourceKey("", "ConfigMap", namespace, "argosy-cm"))
        if found is not None:
            return _read(str((found.get("data") or {}).get(SETTING) or ""))
    return ()


def _read(text: str) -> tuple[int, ...]:
    if text.strip().lower() == "true":
        return WEB
    words = text.replace(",", " ").split()
    return tuple(map(int, words)) if all(re.fullmatch(r"[0-9]{1,5}", word) for word in words) else ()
