"""Live state of the objects that a setup manages.

In: a cluster and a delivery file. Out: live objects. Never: writes; reads objects that no plan needs.
"""

from __future__ import annotations

from argosy.errors import ClusterError, UserError
from argosy.features.setup.delivery import desired_manifests
from argosy.features.setup.delivery.cluster_setup_plan import SetupState, list_managed_keys
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation, ArgoCDNotFound, find_argocd
from argosy.gitops.delivery_file.delivery_value_types import FILE_NAME, DeliveryFile
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, SECRET


async def load_setup_state(cluster: ClusterReader, delivery: DeliveryFile) -> SetupState:
    installation = await _find_installation(cluster, delivery)
    live_objects = {
        key: live for key in list_managed_keys(delivery, installation) if (live := await _load_object(cluster, key))
    }
    if installation.settings_target not in live_objects:
        raise ArgoCDNotFound(f"{installation.settings_target} was deleted in the meantime; run the command again")
    return SetupState(installation, live_objects, await _list_repository_secrets(cluster, delivery, installation))


async def _find_installation(cluster: ClusterReader, delivery: DeliveryFile) -> ArgoCDInstallation:
    try:
        return await find_argocd(cluster, delivery.argocd.namespace, delivery.argocd.name)
    except UserError as error:
        problem = error.message.partition("; ")[0]
        advice = f"name yours under argocd in {FILE_NAME}, or log in to the cluster that has it"
        raise type(error)(f"{problem}; {advice}", where=error.where) from error


async def _list_repository_secrets(
    cluster: ClusterReader, delivery: DeliveryFile, installation: ArgoCDInstallation
) -> list[Manifest]:
    """List repository Secrets, only if the delivery file has repository credentials."""
    if delivery.repository.credentials is None:
        return []
    label = ",".join(f"{name}={value}" for name, value in desired_manifests.REPOSITORY_SECRET_LABELS.items())
    return list((await cluster.list(SECRET, namespace=installation.namespace, labels=label)).items)


async def _load_object(cluster: ClusterReader, key: ResourceKey) -> Manifest | None:
    try:
        return await cluster.get(key)
    except ClusterError as error:
        if error.code == 404 and key.group_kind == APPLICATION:
            problem = "this cluster has no kind Application"
            raise ArgoCDNotFound(f"{problem}; install Argo CD, or log in to the cluster that has it") from error
        raise
