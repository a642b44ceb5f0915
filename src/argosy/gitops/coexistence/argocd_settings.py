"""Where an Argo CD keeps its settings in this cluster: in an ArgoCD resource, or in argocd-cm itself.

In: a cluster, and perhaps a namespace and a name. Out: the Installation. Never: takes one of several; writes.
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
USUAL: Final = "openshift-gitops"  # argo: the name of the instance and of its namespace in OpenShift GitOps
PLAIN_NAMESPACE: Final = "argocd"


class NotInstalled(UserError):
    """There is no such Argo CD; the answer is no, and nothing was changed."""


@dataclass(frozen=True)
class Installation:
    """One Argo CD. With an operator, the resource `name` is the place for settings; without one, argocd-cm is."""

    namespace: str
    name: str = ""

    @property
    def is_operated(self) -> bool:
        return bool(self.name)

    @property
    def key(self) -> ResourceKey:
        """What to write to."""
        return ResourceKey(*ARGOCD, self.namespace, self.name) if self.is_operated else self.settings

    @property
    def settings(self) -> ResourceKey:
        """What Argo CD reads."""
        return ResourceKey(*CONFIG_MAP, self.namespace, SETTINGS)


async def find_argocd(cluster: ClusterReader, namespace: str = "", name: str = "") -> Installation:
    """With a name, that resource; else the only one of the namespace or cluster, the usual one first; else a plain
    argocd-cm that belongs to no resource."""
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
            raise UserError(f"{what}; name one with --namespace and --name")


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
    advice = "name yours with --namespace and --name, or log in to the cluster that has it"
    return NotInstalled(f"ArgoCD CR '{name}' not found in namespace '{namespace}'; {advice}")


async def _get(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    """None where the kind is not served, too."""
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
        return []  # may not look everywhere: then there is only what was named
    except ClusterError as error:
        if error.code == 404:
            return []
        raise
    return [key_of(manifest) for manifest in listing.items]
