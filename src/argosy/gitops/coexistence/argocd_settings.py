"""Finds where an Argo CD in this cluster keeps its settings: in an ArgoCD resource, or in argocd-cm.

In: a cluster, and optionally a namespace and a name. Out: the Installation. Never: chooses one of several; writes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.errors import ClusterError, Forbidden, UserError
from argosy.kube.client import ClusterReader
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

ARGOCD: Final = GroupKind("argoproj.io", "ArgoCD")
APPLICATION: Final = GroupKind("argoproj.io", "Application")
CONFIG_MAP: Final = GroupKind("", "ConfigMap")
SETTINGS: Final = "argocd-cm"
USUAL: Final = "openshift-gitops"  # argo: name of the instance and its namespace in OpenShift GitOps
PLAIN_NAMESPACE: Final = "argocd"


class NotInstalled(UserError):
    """No such Argo CD; nothing was changed."""


@dataclass(frozen=True)
class Installation:
    """One Argo CD. With an operator, settings go into the ArgoCD resource `name`; otherwise into argocd-cm."""

    namespace: str
    name: str = ""

    @property
    def is_operated(self) -> bool:
        return bool(self.name)

    @property
    def key(self) -> ResourceKey:
        """The object to write to."""
        return ResourceKey(*ARGOCD, self.namespace, self.name) if self.is_operated else self.settings

    @property
    def settings(self) -> ResourceKey:
        """The ConfigMap that Argo CD reads."""
        return ResourceKey(*CONFIG_MAP, self.namespace, SETTINGS)


async def find_argocd(cluster: ClusterReader, namespace: str = "", name: str = "") -> Installation:
    """Return the named resource; else the only one of the namespace or cluster, the OpenShift default first; else a
    plain argocd-cm that no resource owns.
    """
    if name:
        place = namespace or USUAL
        if await _get(cluster, ResourceKey(*ARGOCD, place, name)) is None:
            raise _not_found(place, name)
        return Installation(place, name)
    if not namespace and await _get(cluster, ResourceKey(*ARGOCD, USUAL, USUAL)) is not None:
        return Installation(USUAL, USUAL)
    match await _resources(cluster, namespace):
        case [only]:
            return Installation(only.namespace, only.name)
        case []:
            return await _plain(cluster, namespace)
        case several:
            names = ", ".join(f"{key.namespace}/{key.name}" for key in several)
            where = f"namespace {namespace}" if namespace else "this cluster"
            what = f"{where} has {len(several)} ArgoCD resources ({names})"
            raise UserError(f"{what}; choose one with --namespace and --name")


async def _plain(cluster: ClusterReader, namespace: str) -> Installation:
    plain = Installation(namespace or PLAIN_NAMESPACE)
    settings = await _get(cluster, plain.settings)
    if settings is None or _is_owned(settings):
        raise _not_found(namespace or USUAL, USUAL)
    return plain


def _is_owned(settings: Manifest) -> bool:
    references = settings["metadata"].get("ownerReferences") or ()
    return any(reference.get("kind") == ARGOCD.kind for reference in references)


def _not_found(namespace: str, name: str) -> NotInstalled:
    advice = "choose yours with --namespace and --name, or log in to its cluster"
    return NotInstalled(f"ArgoCD CR '{name}' not found in namespace '{namespace}'; {advice}")


async def _get(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    """Return the object; None also if the kind is not served."""
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404:
            return None
        raise


async def _resources(cluster: ClusterReader, namespace: str) -> list[ResourceKey]:
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
