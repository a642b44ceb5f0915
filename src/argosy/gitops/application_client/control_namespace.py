"""Finds the control namespace: where settings and Applications of an installation are.

In: a cluster. Out: a namespace. Never: creates a namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from argosy.errors import ClusterError, Forbidden
from argosy.gitops.application.install_labels import CONTROL, USUAL_NAMESPACE, is_control
from argosy.kube.client import ClusterReader
from argosy.kube.controller.sharding.leases import LABELS
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

ARGOCD: Final = GroupKind("argoproj.io", "ArgoCD")
NAMESPACE: Final = GroupKind("", "Namespace")
LEASES: Final = GroupKind("coordination.k8s.io", "Lease")
USUAL: Final = "argocd"
LEASE: Final = "argosy-application-controller"  # Lease of the engine's leader


async def control_namespace(cluster: ClusterReader, near: Sequence[str] = ()) -> str:
    """Return the namespace where argosy is installed, else the one of an ArgoCD resource, else `argocd`.

    `candidates`: namespaces to try if listing in all namespaces is forbidden.
    """
    near = list(dict.fromkeys(near))
    labelled = await _asked(cluster, NAMESPACE, labels=f"{CONTROL}=true")
    if labelled is None:
        labelled = [each for name in (*near, USUAL_NAMESPACE) if (each := await _seen(cluster, name))]
    if labelled:  # argosy's engine reads settings there, even if an ArgoCD resource is elsewhere
        return await _at_work(cluster, [str(each["metadata"]["name"]) for each in labelled])
    for place in ("", *near):
        found = await _asked(cluster, ARGOCD, namespace=place)
        if found:
            return str(found[0]["metadata"]["namespace"])
        if found is not None:
            break
    return USUAL


async def _asked(
    cluster: ClusterReader, kind: GroupKind, *, namespace: str = "", labels: str = ""
) -> Sequence[Manifest] | None:
    """List objects: empty if the kind is not served, None if forbidden; raises ClusterError for other errors."""
    try:
        return (await cluster.list(kind, namespace=namespace, labels=labels)).items
    except ClusterError as error:
        if error.code == 404:
            return ()
        if error.code == 403:
            return None
        told = f"cannot find the control namespace: {error.message}"
        raise ClusterError(told, code=error.code, key=error.key, reason=error.reason) from error


async def _at_work(cluster: ClusterReader, names: Sequence[str]) -> str:
    """Return the first namespace with a running engine: an uninstalled one keeps its settings and label."""
    for name in names if len(names) > 1 else ():
        with suppress(Forbidden):
            if await has_engine(cluster, name):
                return name
    return names[0]


async def _seen(cluster: ClusterReader, name: str) -> Manifest | None:
    """k8s: users who may not list namespaces can often get the namespaces they have roles in."""
    try:
        found = await cluster.get(ResourceKey(*NAMESPACE, "", name))
    except Forbidden:
        return None
    return found if found and is_control(found) else None


async def has_engine(cluster: ClusterReader, namespace: str) -> bool:
    """True if an argosy engine holds the leader Lease or a member Lease there."""
    lease = await cluster.get(ResourceKey(*LEASES, namespace, LEASE))
    return bool(held((lease,))) or bool(await members_of(cluster, namespace))


async def members_of(cluster: ClusterReader, namespace: str) -> list[Manifest]:
    """List the held Leases of sharded engines; empty if they cannot be read."""
    try:
        return held((await cluster.list(LEASES, namespace=namespace, labels=LABELS)).items)
    except ClusterError:
        return []


def held(leases: Iterable[Manifest | None]) -> list[Manifest]:
    """Keep Leases with a holder: an engine that stops releases its Lease and leaves it there."""
    return [each for each in leases if each and (each.get("spec") or {}).get("holderIdentity")]
