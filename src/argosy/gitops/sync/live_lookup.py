"""What lives under a key, where its kind may have gone, or may not have come yet.

In: a key. Out: the manifest; None where there is none. Never: takes what cannot be asked for what is gone: that raises.
"""

from __future__ import annotations

from argosy.errors import ClusterError
from argosy.kube.client import ClusterReader
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


async def read_live(key: ResourceKey, cluster: ClusterReader) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404:
            return None  # its kind is not served, so there are none of it
        raise
