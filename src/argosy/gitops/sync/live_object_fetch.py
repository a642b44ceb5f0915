"""Reads a live object whose kind may not be served.

In: a key. Out: the manifest; None if it does not exist. Never: takes an object that cannot be read as deleted: that
raises.
"""

from __future__ import annotations

from argosy.errors import ClusterError
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


async def fetch_live(key: ResourceKey, cluster: ClusterReader) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404:
            return None  # its kind is not served, so it does not exist
        raise
