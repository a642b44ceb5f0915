"""Where an installation's settings and Applications are.

In: a cluster. Out: a namespace. Never: creates one.
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
LEASE: Final = "argosy-application-controller"  # held by the engine that delivers


async def control_namespace(cluster: ClusterReader, near: Sequence[str] = ()) -> str:
    """Where settings are: where argosy is installed, with an ArgoCD resource, else where they usually are.

    `near`: where else to look for who may not look everywhere.
    """
    near = list(dict.fromkeys(near))
    labelled = await _asked(cluster, NAMESPACE, labels=f"{CONTROL}=true")
    if labelled is None:
        labelled = [each for name in (*near, USUAL_NAMESPACE) if (each := await _seen(cluster, name))]
    if labelled:  # argosy's own engine reads them there, whatever an operator has elsewhere
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
    """Nothing where it is not served; None where it may not be seen. All else says nothing of where settings are."""
    try:
        return (await cluster.list(kind, namespace=namespace, labels=labels)).items
    except ClusterError as error:
        if error.code == 404:
            return ()
        if error.code == 403:
            return None
        told = f"where the settings are cannot be asked: {error.message}"
        raise ClusterError(told, code=error.code, key=error.key, reason=error.reason) from error


async def _at_work(cluster: ClusterReader, names: Sequence[str]) -> str:
    """Of several the first with an engine: one that argosy was taken out of keeps its settings, and its label."""
    for name in names if len(names) > 1 else ():
        with suppress(Forbidden):
            if await has_engine(cluster, name):
                return name
    return names[0]


async def _seen(cluster: ClusterReader, name: str) -> Manifest | None:
    """k8s: who may not list namespaces may often get those that they have rights in."""
    try:
        found = await cluster.get(ResourceKey(*NAMESPACE, "", name))
    except Forbidden:
        return None
    return found if found and is_control(found) else None


async def has_engine(cluster: ClusterReader, namespace: str) -> bool:
    """Whether an engine of argosy holds the right to deliver there, alone or with others."""
    lease = await cluster.get(ResourceKey(*LEASES, namespace, LEASE))
    return bool(held((lease,))) or bool(await members_of(cluster, namespace))


async def members_of(cluster: ClusterReader, namespace: str) -> list[Manifest]:
    """Leases of engines that share the work there; none where that may not be seen."""
    try:
        return held((await cluster.list(LEASES, namespace=namespace, labels=LABELS)).items)
    except ClusterError:
        return []


def held(leases: Iterable[Manifest | None]) -> list[Manifest]:
    """Those that somebody holds: whoever stops gives the Lease back, and it stays there without a holder."""
    return [each for each in leases if each and (each.get("spec") or {}).get("holderIdentity")]
