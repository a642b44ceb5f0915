"""Tests connections to clusters: state and server version.

In: an ApplicationService and a cluster Secret. Out: a ConnectionState. Never: connects from a server that has no
opener; keeps credentials in the cache.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from argosy.errors import ArgosyError, Forbidden
from argosy.features.clusters.service import IN_CLUSTER_SERVER, read_server
from argosy.features.repositories.connection_test import FAILED, SUCCESSFUL, ConnectionState
from argosy.gitops.application_client.application_service import ApplicationService, current_timestamp
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret, load_config_map_data
from argosy.gitops.clusters.cluster_secret import build_connection, read_exec_programs
from argosy.gitops.reconciler.destination_api_versions import list_api_versions
from argosy.gitops.reconciler.settings_watch import ARGOSY_CM
from argosy.kube.client import Cluster, VersionedCluster
from argosy.kube.client.connection_settings import Connection

NOT_TESTED_MESSAGE: Final = "only the controller connects to this cluster; see the conditions of its Applications"
CONNECTION_TIMEOUT_SECONDS: Final = 5.0  # timeout of a connection test
STATE_CACHE_SECONDS: Final = 30.0  # seconds for which a result is cached
MAX_CACHED_STATES: Final = 1000
_VERSION_NUMBERS: Final = re.compile(r"v?(\d+(?:\.\d+)+)")


class ClusterConnection(NamedTuple):
    """The result of a connection test. Version and API versions are empty if it failed."""

    state: ConnectionState
    version: str = ""
    api_versions: tuple[str, ...] = ()


async def build_cluster_connection(app_service: ApplicationService, values: Mapping[str, str]) -> Connection:
    """Connection with the same exec programs that the controller allows."""
    try:
        allowed = read_exec_programs(await load_config_map_data(app_service, ARGOSY_CM))
    except Forbidden:
        allowed = read_exec_programs({})
    return build_connection(values, allowed)


async def fetch_state(app_service: ApplicationService, declared: DeclaredSecret) -> ClusterConnection:
    if not read_server(declared):
        message = f"Secret {declared.name} has no valid server; set it, or delete the Secret"
        return ClusterConnection(ConnectionState(FAILED, message, current_timestamp()))
    if read_server(declared) == IN_CLUSTER_SERVER:
        return await _test_connection(app_service.cluster)
    if app_service.opener is None:
        return ClusterConnection(ConnectionState("Unknown", NOT_TESTED_MESSAGE))
    try:
        connection = await build_cluster_connection(app_service, _connection_values(declared))
        async with asyncio.timeout(CONNECTION_TIMEOUT_SECONDS), app_service.opener(connection) as cluster:
            return await _test_connection(cluster)
    except TimeoutError:
        message = f"timeout after {CONNECTION_TIMEOUT_SECONDS:g} s"
        return ClusterConnection(ConnectionState(FAILED, message, current_timestamp()))
    except ArgosyError as error:
        return ClusterConnection(ConnectionState(FAILED, str(error), current_timestamp()))


def _connection_values(declared: DeclaredSecret) -> dict[str, str]:
    return {**declared.values, "server": read_server(declared)}


class ClusterStateCache:
    """Cached connection states of clusters."""

    def __init__(self) -> None:
        self._cached: dict[str, tuple[float, ClusterConnection]] = {}

    async def get_state(self, app_service: ApplicationService, declared: DeclaredSecret) -> ClusterConnection:
        if read_server(declared) == IN_CLUSTER_SERVER:
            return await fetch_state(app_service, declared)
        text = json.dumps(_connection_values(declared), sort_keys=True)
        cache_key = hashlib.sha256(text.encode()).hexdigest()  # a hash, because the values are secret
        clock = asyncio.get_running_loop().time
        cached = self._cached.get(cache_key)
        if cached is not None and cached[0] > clock():
            return cached[1]
        connection = await fetch_state(app_service, declared)
        if len(self._cached) > MAX_CACHED_STATES:
            self._cached.clear()
        self._cached[cache_key] = clock() + STATE_CACHE_SECONDS, connection
        return connection


async def _test_connection(cluster: Cluster) -> ClusterConnection:
    try:
        version = await cluster.version() if isinstance(cluster, VersionedCluster) else ""
        kinds = await cluster.kinds()
    except ArgosyError as error:
        return ClusterConnection(ConnectionState(FAILED, str(error), current_timestamp()))
    state = ConnectionState(SUCCESSFUL, "", current_timestamp())
    return ClusterConnection(state, remove_vendor_suffix(version), list_api_versions(kinds))


def remove_vendor_suffix(version: str) -> str:
    """argo: `v1.32.13-gke.100` is shown as `v1.32.13`."""
    match = _VERSION_NUMBERS.match(version)
    return f"v{match[1]}" if match else version
