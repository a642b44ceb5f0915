"""Live state of the objects that a setup manages.

In: a cluster and a delivery file. Out: live objects. Never: writes; reads objects that no plan needs.
"""

from __future__ import annotations

from argosy.errors import ClusterError, UserError
from argosy.features.setup.delivery import desired
from argosy.features.setup.delivery.plan import Live, asked_keys
from argosy.gitops.coexistence.argocd_settings import APPLICATION, Installation, NotInstalled, find_argocd
from argosy.gitops.delivery_file.values import FILE, Delivery
from argosy.kube.client import ClusterReader
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


async def survey(cluster: ClusterReader, delivery: Delivery) -> Live:
    installation = await _installation(cluster, delivery)
    found = {key: live for key in asked_keys(delivery, installation) if (live := await _get(cluster, key))}
    if installation.key not in found:
        raise NotInstalled(f"{installation.key} was deleted in the meantime; run the command again")
    return Live(installation, found, await _repositories(cluster, delivery, installation))


async def _installation(cluster: ClusterReader, delivery: Delivery) -> Installation:
    try:
        return await find_argocd(cluster, delivery.argocd.namespace, delivery.argocd.name)
    except UserError as error:
        what = error.message.partition("; ")[0]
        advice = f"name yours under argocd in {FILE}, or log in to the cluster that has it"
        raise type(error)(f"{what}; {advice}", where=error.where) from error


async def _repositories(cluster: ClusterReader, delivery: Delivery, installation: Installation) -> list[Manifest]:
    """List repository Secrets, only if the delivery file has repository credentials."""
    if delivery.repository.credentials is None:
        return []
    label = ",".join(f"{name}={value}" for name, value in desired.FOR_REPOSITORY.items())
    return list((await cluster.list(desired.SECRET, namespace=installation.namespace, labels=label)).items)


async def _get(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404 and key.group_kind == APPLICATION:
            what = "this cluster has no kind Application"
            raise NotInstalled(f"{what}; install Argo CD, or log in to the cluster that has it") from error
        raise
