"""Simulates kubelet, scheduler and router for the objects of this add-on only.

In: the key of an object with the mark of this add-on. Out: its status, and the Pods of a workload.
Never: touches an object without that mark.
"""

from __future__ import annotations

from collections.abc import Iterable

from argosy.errors import ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext, Watch, map_to_owner
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import DEPLOYMENT, NAMESPACE, POD, STATEFUL_SET
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import is_simulated
from argosy.sandbox.simulators.openshift_gitops.simulated_object_statuses import STATUS_BUILDERS
from argosy.sandbox.simulators.openshift_gitops.workload_manifests import REVISION_LABELS, build_pods

WORKLOAD_KINDS = (DEPLOYMENT, STATEFUL_SET)


def enqueue_if_simulated(manifest: Manifest) -> Iterable[ResourceKey]:
    if is_simulated(manifest):
        yield key_of(manifest)


class WorkloadSimulator:
    """`kinds` are the kinds of the chosen variant."""

    name = "argocd-player"

    def __init__(self, kinds: Iterable[GroupKind] = tuple(STATUS_BUILDERS)) -> None:
        status_watches = [Watch(kind, enqueue_if_simulated, metadata_only=True) for kind in kinds]
        pod_watches = [Watch(POD, map_to_owner(kind), metadata_only=True) for kind in WORKLOAD_KINDS]
        self.watches = (*status_watches, *pod_watches)

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        live = await context.cluster.get(key)
        if live is None or not is_simulated(live) or live["metadata"].get("deletionTimestamp"):
            return
        if key.group_kind in WORKLOAD_KINDS:
            if not await is_namespace_active(key.namespace, context.cluster):
                return
            await _sync_pods(live, context.cluster)
        await update_status_if_changed(live, STATUS_BUILDERS[key.group_kind](live), context.cluster)


async def is_namespace_active(namespace: str, cluster: Cluster) -> bool:
    """True if the namespace exists and is not being deleted; such a namespace accepts no new objects."""
    manifest = await cluster.get(ResourceKey(*NAMESPACE, "", namespace))
    return manifest is not None and not manifest["metadata"].get("deletionTimestamp")


async def update_status_if_changed(live: Manifest, status: Manifest, cluster: Cluster) -> None:
    """Patch the status only if it differs; otherwise every write would trigger the controller again."""
    current = live.get("status") or {}
    if any(current.get(field) != value for field, value in status.items()):
        await cluster.patch(key_of(live), {"status": status}, subresource="status")


async def _sync_pods(workload: Manifest, cluster: Cluster) -> None:
    metadata = workload["metadata"]
    desired = {key_of(pod): pod for pod in build_pods(workload)}
    listing = await cluster.list(POD, namespace=metadata["namespace"])
    revision = REVISION_LABELS[workload["kind"]]
    for pod in listing.items:
        if not _is_owned_by(pod, metadata["uid"]):
            continue
        key = key_of(pod)
        if key in desired and _read_label(pod, revision) == _read_label(desired[key], revision):
            del desired[key]
        else:
            await _delete_pod(pod, cluster)
    for pod in desired.values():
        try:
            await cluster.create(pod)
        # created by the previous reconcile or still terminating; its watch event triggers the next one
        except Conflict:
            continue


async def _delete_pod(pod: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.delete(key_of(pod), uid=pod["metadata"]["uid"], grace=0)
    except ClusterError as error:
        if error.code not in (404, 409):
            raise


def _is_owned_by(pod: Manifest, owner_uid: str) -> bool:
    return any(reference["uid"] == owner_uid for reference in pod["metadata"].get("ownerReferences") or ())


def _read_label(pod: Manifest, name: str) -> str | None:
    value: str | None = (pod["metadata"].get("labels") or {}).get(name)
    return value
