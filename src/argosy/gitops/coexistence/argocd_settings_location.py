"""Finds where an Argo CD in this cluster keeps its settings: in an ArgoCD resource, or in argocd-cm.

In: a cluster, and optionally a namespace and a name. Out: the Installation. Never: chooses one of several; writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.errors import ClusterError, Forbidden, UserError
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import ARGOCD, CONFIG_MAP

SETTINGS_CONFIG_MAP_NAME: Final = "argocd-cm"
OPENSHIFT_GITOPS: Final = "openshift-gitops"  # argo: name of the instance and its namespace in OpenShift GitOps
DEFAULT_NAMESPACE: Final = "argocd"


class ArgoCDNotFound(UserError):
    """No such Argo CD; nothing was changed."""


@dataclass(frozen=True)
class ArgoCDInstallation:
    """One Argo CD. With an operator, settings go into the ArgoCD resource `name`; otherwise into argocd-cm."""

    namespace: str
    name: str = ""

    @property
    def has_operator(self) -> bool:
        return bool(self.name)

    @property
    def settings_target(self) -> ResourceKey:
        """The object to write to."""
        return ResourceKey(*ARGOCD, self.namespace, self.name) if self.has_operator else self.config_map_key

    @property
    def config_map_key(self) -> ResourceKey:
        """The ConfigMap that Argo CD reads."""
        return ResourceKey(*CONFIG_MAP, self.namespace, SETTINGS_CONFIG_MAP_NAME)


async def find_argocd(cluster: ClusterReader, namespace: str = "", name: str = "") -> ArgoCDInstallation:
    """Return the named resource; else the only one of the namespace or cluster, the OpenShift default first; else a
    plain argocd-cm that no resource owns.
    """
    if name:
        resource_namespace = namespace or OPENSHIFT_GITOPS
        if await _get_if_served(cluster, ResourceKey(*ARGOCD, resource_namespace, name)) is None:
            raise _build_not_found(resource_namespace, name)
        return ArgoCDInstallation(resource_namespace, name)
    if (
        not namespace
        and await _get_if_served(cluster, ResourceKey(*ARGOCD, OPENSHIFT_GITOPS, OPENSHIFT_GITOPS)) is not None
    ):
        return ArgoCDInstallation(OPENSHIFT_GITOPS, OPENSHIFT_GITOPS)
    match await _list_argocd_resources(cluster, namespace):
        case [only]:
            return ArgoCDInstallation(only.namespace, only.name)
        case []:
            return await _find_argocd_without_operator(cluster, namespace)
        case several:
            names = ", ".join(f"{key.namespace}/{key.name}" for key in several)
            where = f"namespace {namespace}" if namespace else "this cluster"
            problem = f"{where} has {len(several)} ArgoCD resources ({names})"
            raise UserError(f"{problem}; choose one with --namespace and --name")


async def _find_argocd_without_operator(cluster: ClusterReader, namespace: str) -> ArgoCDInstallation:
    installation = ArgoCDInstallation(namespace or DEFAULT_NAMESPACE)
    settings = await _get_if_served(cluster, installation.config_map_key)
    if settings is None or _is_owned_by_operator(settings):
        raise _build_not_found(namespace or OPENSHIFT_GITOPS, OPENSHIFT_GITOPS)
    return installation


def _is_owned_by_operator(settings: Manifest) -> bool:
    references = settings["metadata"].get("ownerReferences") or ()
    return any(reference.get("kind") == ARGOCD.kind for reference in references)


def _build_not_found(namespace: str, name: str) -> ArgoCDNotFound:
    advice = "choose yours with --namespace and --name, or log in to its cluster"
    return ArgoCDNotFound(f"ArgoCD CR '{name}' not found in namespace '{namespace}'; {advice}")


async def _get_if_served(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    """Return the object; None also if the kind is not served."""
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404:
            return None
        raise


async def _list_argocd_resources(cluster: ClusterReader, namespace: str) -> list[ResourceKey]:
    try:
        listing = await cluster.list(ARGOCD, namespace=namespace)
    except Forbidden:
        if namespace:
            raise
        return []  # no permission for all namespaces: only the named one counts
    except ClusterError as error:
        if error.code == 404:
            return []
        raise
    return [key_of(manifest) for manifest in listing.items]
