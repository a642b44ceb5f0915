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
from argosy.gitops.application.cluster_address import ClusterAddress, parse_cluster_address
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.boolean_text import parse_switch

HERE, HERE_NAME = IN_CLUSTER
IN_CLUSTER_ENABLED: Final = "cluster.inClusterEnabled"  # argo


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """A cluster Secret without its credentials."""

    name: str
    server: ClusterAddress
    secret: str  # name of the Secret
    project: str = ""  # argo: the project of a project-scoped cluster
    is_paused: bool = False  # argo: Applications with this destination are not reconciled
    namespaces: tuple[str, ...] = ()  # argo: the only managed namespaces; empty for all
    has_cluster_kinds: bool = True  # argo: True if cluster-scoped objects are managed

    def stranger(self, key: ResourceKey, *, is_namespaced: bool) -> str:
        """Return why an object is not managed here; empty if it is. argo: the same messages."""
        if is_namespaced:
            is_known = not self.namespaces or key.namespace in self.namespaces
            return "" if is_known else f'namespace "{key.namespace}" for {key.kind} "{key.name}" is not managed'
        if self.has_cluster_kinds:
            return ""
        return f'cluster level {key.kind} "{key.name}" can not be managed when in namespaced mode'


@dataclass(frozen=True, slots=True)
class Clusters:
    known: tuple[KnownCluster, ...] = ()
    has_own: bool = True  # argo: cluster.inClusterEnabled

    def find(self, destination: Destination) -> KnownCluster | None:
        """Find a cluster by address, else by name, or by both; the in-cluster one needs no Secret."""
        server, name = destination.server, destination.name
        found = [each for each in self.known if (server == each.server if server else name == each.name)]
        if found:
            return next((each for each in found if name == each.name), found[0])
        is_here = (server or name) in IN_CLUSTER
        return KnownCluster(HERE_NAME, HERE, "") if is_here else None

    def placed(self, app: Application) -> Application:
        """Complete the destination with name and address from the cluster Secret."""
        place = app.destination
        if (place.server or place.name) in IN_CLUSTER or (place.server and place.name):
            return app
        found = self.find(place)
        if found is None or not found.secret:
            return app
        return replace(app, destination=place._replace(server=found.server, name=found.name))

    def is_paused(self, destination: Destination) -> bool:
        found = self.find(destination)
        return found is not None and found.is_paused

    def refusal(self, destination: Destination) -> str:
        """Return why nothing can be delivered to the destination; empty if it can. argo: InvalidSpecError"""
        server, name = destination.server, destination.name
        if server and name:
            return f"application destination can't have both name and server defined: {name} {server}"
        if not server and not name:
            return "Destination server missing from app spec"
        found = self.find(destination)
        if found is None and server:
            return f'error getting cluster by server "{server}": cluster "{server}" not found'
        if found is None:
            return f"there are no clusters with this name: {name}"
        same = sorted({each.server for each in self.known if not server and each.name == name})
        if len(same) > 1:
            return f"there are {len(same)} clusters with the same name: [{' '.join(same)}]"
        if found.server != HERE:
            return ""
        if not self.has_own:
            return f"cluster {HERE} is disabled by cluster.inClusterEnabled in argocd-cm"
        return ""


def read_clusters(secrets: Iterable[Manifest], argocd_cm: Mapping[str, str] = {}) -> Clusters:
    """Read cluster Secrets in the order of their names; those without an address are ignored."""
    found = sorted(filter(None, map(_read, secrets)), key=lambda each: each.secret)
    return Clusters(tuple(found), is_own_cluster_enabled(argocd_cm) is True)


def is_own_cluster_enabled(argocd_cm: Mapping[str, str]) -> bool | None:
    """Return whether the in-cluster destination is enabled; None if the value is invalid."""
    text = argocd_cm.get(IN_CLUSTER_ENABLED, "")
    return parse_switch(text) if text.strip() else True


def _read(secret: Manifest) -> KnownCluster | None:
    metadata = secret["metadata"]
    if (metadata.get("labels") or {}).get(SECRET_TYPE) != "cluster":
        return None
    data = secret.get("data") or {}
    server = parse_cluster_address(_text(data, "server"))
    if not server:
        return None
    paused = (metadata.get("annotations") or {}).get(SKIP_RECONCILE) == "true"
    names = tuple(sorted({each.strip() for each in _text(data, "namespaces").split(",")} - {""}))
    return KnownCluster(
        _text(data, "name") or server,
        server,
        metadata["name"],
        _text(data, "project"),
        paused,
        names,
        not names or _text(data, "clusterResources").lower() == "true",
    )


def _text(data: Mapping[str, Any], name: str) -> str:
    try:
        return base64.b64decode(str(data.get(name) or "")).decode().strip()
    except (binascii.Error, UnicodeDecodeError):
        return ""
