"""The clusters of an installation, and which of them a destination means.

In: Secrets with the label secret-type: cluster, a destination. Out: its cluster, or why there is none. Never: raises;
keeps credentials.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from argosy.annotations import SECRET_TYPE, SKIP_RECONCILE
from argosy.gitops.application import IN_CLUSTER, Application, Destination
from argosy.gitops.application.canonical_cluster_address import ClusterAddress, parse_cluster_address
from argosy.kube.objects import Manifest
from argosy.kube.objects.config_map_booleans import parse_boolean
from argosy.kube.resource_key import ResourceKey

IN_CLUSTER_SERVER, IN_CLUSTER_NAME = IN_CLUSTER
IN_CLUSTER_ENABLED_KEY: Final = "cluster.inClusterEnabled"  # argo


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster Secret without its credentials."""

    name: str
    server: ClusterAddress
    secret_name: str  # name of the Secret
    project: str = ""  # argo: the project of a project-scoped cluster
    is_paused: bool = False  # argo: Applications with this destination are not reconciled
    namespaces: tuple[str, ...] = ()  # argo: the only managed namespaces; empty for all
    manages_cluster_scoped: bool = True  # argo: True if cluster-scoped objects are managed

    def find_scope_error(self, key: ResourceKey, *, is_namespaced: bool) -> str:
        """Return why an object is not managed here; empty if it is. argo: the same messages."""
        if is_namespaced:
            is_known = not self.namespaces or key.namespace in self.namespaces
            return "" if is_known else f'namespace "{key.namespace}" for {key.kind} "{key.name}" is not managed'
        if self.manages_cluster_scoped:
            return ""
        return f'cluster level {key.kind} "{key.name}" can not be managed when in namespaced mode'


@dataclass(frozen=True, slots=True)
class DestinationClusters:
    known_clusters: tuple[KnownCluster, ...] = ()
    has_in_cluster: bool = True  # argo: cluster.inClusterEnabled

    def find(self, destination: Destination) -> KnownCluster | None:
        """Find a cluster by address, else by name, or by both; the in-cluster one needs no Secret."""
        server, name = destination.server, destination.name
        matching = [
            cluster for cluster in self.known_clusters if (server == cluster.server if server else name == cluster.name)
        ]
        if matching:
            return next((cluster for cluster in matching if name == cluster.name), matching[0])
        is_in_cluster = (server or name) in IN_CLUSTER
        return KnownCluster(IN_CLUSTER_NAME, IN_CLUSTER_SERVER, "") if is_in_cluster else None

    def resolve_destination(self, app: Application) -> Application:
        """Complete the destination with name and address from the cluster Secret."""
        destination = app.destination
        if (destination.server or destination.name) in IN_CLUSTER or (destination.server and destination.name):
            return app
        cluster = self.find(destination)
        if cluster is None or not cluster.secret_name:
            return app
        return replace(app, destination=destination._replace(server=cluster.server, name=cluster.name))

    def is_paused(self, destination: Destination) -> bool:
        cluster = self.find(destination)
        return cluster is not None and cluster.is_paused

    def find_destination_error(self, destination: Destination) -> str:
        """Return why nothing can be delivered to the destination; empty if it can. argo: InvalidSpecError"""
        server, name = destination.server, destination.name
        if server and name:
            return f"application destination can't have both name and server defined: {name} {server}"
        if not server and not name:
            return "Destination server missing from app spec"
        cluster = self.find(destination)
        if cluster is None and server:
            return f'error getting cluster by server "{server}": cluster "{server}" not found'
        if cluster is None:
            return f"there are no clusters with this name: {name}"
        same_name_servers = sorted(
            {known_cluster.server for known_cluster in self.known_clusters if not server and known_cluster.name == name}
        )
        if len(same_name_servers) > 1:
            return f"there are {len(same_name_servers)} clusters with the same name: [{' '.join(same_name_servers)}]"
        if cluster.server != IN_CLUSTER_SERVER:
            return ""
        if not self.has_in_cluster:
            return f'cluster "{IN_CLUSTER_SERVER}" is disabled by cluster.inClusterEnabled in argocd-cm'
        return ""


def read_clusters(secrets: Iterable[Manifest], argocd_cm: Mapping[str, str] = {}) -> DestinationClusters:
    """Read cluster Secrets in the order of their names; those without an address are ignored."""
    clusters = sorted(filter(None, map(_read_cluster_secret, secrets)), key=lambda cluster: cluster.secret_name)
    return DestinationClusters(tuple(clusters), is_own_cluster_enabled(argocd_cm) is True)


def is_own_cluster_enabled(argocd_cm: Mapping[str, str]) -> bool | None:
    """Return whether the in-cluster destination is enabled; None if the value is invalid."""
    text = argocd_cm.get(IN_CLUSTER_ENABLED_KEY, "")
    return parse_boolean(text) if text.strip() else True


def _read_cluster_secret(secret: Manifest) -> KnownCluster | None:
    metadata = secret["metadata"]
    if (metadata.get("labels") or {}).get(SECRET_TYPE) != "cluster":
        return None
    data = secret.get("data") or {}
    server = parse_cluster_address(decode_field(data, "server"))
    if not server:
        return None
    paused = (metadata.get("annotations") or {}).get(SKIP_RECONCILE) == "true"
    names = tuple(sorted({namespace.strip() for namespace in decode_field(data, "namespaces").split(",")} - {""}))
    return KnownCluster(
        decode_field(data, "name") or server,
        server,
        metadata["name"],
        decode_field(data, "project"),
        paused,
        names,
        not names or decode_field(data, "clusterResources").lower() == "true",
    )


def decode_field(data: Mapping[str, Any], name: str) -> str:
    """Return a field of a Secret as text; empty if it is missing or invalid."""
    try:
        return base64.b64decode(str(data.get(name) or "")).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""
