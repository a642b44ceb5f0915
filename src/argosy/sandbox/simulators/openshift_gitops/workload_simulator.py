"""Simulates kubelet, scheduler and router for the objects of this add-on only.

In: the key of an object with the mark of this add-on. Out: its status, and the Pods of a workload.
Never: touches an object without that mark.
"""

from __future__ import annotations

from collections.abc import Iterable

from argosy.errors import ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.controller import Context, Watch, owner
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.openshift_gitops import constants
from argosy.sandbox.simulators.openshift_gitops.constants import is_simulated
from argosy.sandbox.simulators.openshift_gitops.statuses import PLAYED
from argosy.sandbox.simulators.openshift_gitops.workloads import REVISION, pods_of

WORKLOADS = (constants.DEPLOYMENT, constants.STATEFUL_SET)


def marked(manifest: Manifest) -> Iterable[ResourceKey]:
    if is_simulated(manifest):
        yield key_of(manifest)


class Player:
    """`kinds` are the kinds of the chosen variant."""

    name = "argocd-player"

    def __init__(self, kinds: Iterable[GroupKind] = tuple(PLAYED)) -> None:
        own = [Watch(kind, marked, metadata_only=True) for kind in kinds]
        pods = [Watch(constants.POD, owner(kind), metadata_only=True) for kind in WORKLOADS]
        self.watches = (*own, *pods)

    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        live = await context.cluster.get(key)
        if live is None or not is_simulated(live) or live["metadata"].get("deletionTimestamp"):
            return
        if key.group_kind in WORKLOADS:
            if not await lives(key.namespace, context.cluster):
                return
            await _keep_pods(live, context.cluster)
        await keep_status(live, PLAYED[key.group_kind](live), context.cluster)


async def lives(namespace: str, cluster: Cluster) -> bool:
    """True if the namespace exists and is not being deleted; such a namespace accepts no new objects."""
    found = await cluster.get(ResourceKey(*constants.NAMESPACE, "", namespace))
    return found is not None and not found["metadata"].get("deletionTimestamp")


async def keep_status(live: Manifest, status: Manifest, cluster: Cluster) -> None:
    """Patch the status only if it differs; otherwise every write would trigger the controller again."""
    known = live.get("status") or {}
    if any(known.get(field) != value for field, value in status.items()):
        await cluster.patch(key_of(live), {"status": status}, subresource="status")


async def _keep_pods(workload: Manifest, cluster: Cluster) -> None:
    metadata = workload["metadata"]
    wanted = {key_of(pod): pod for pod in pods_of(workload)}
    listing = await cluster.list(constants.POD, namespace=metadata["namespace"])
    revision = REVISION[workload["kind"]]
    for pod in listing.items:
        if not _belongs(pod, metadata["uid"]):
            continue
        key = key_of(pod)
        if key in wanted and _label(pod, revision) == _label(wanted[key], revision):
            del wanted[key]
        else:
            await _remove(pod, cluster)
    for pod in wanted.values():
        try:
            await cluster.create(pod)
        # created by the previous reconcile or still terminating; its watch event triggers the next one
        except Conflict:
            continue


async def _remove(pod: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.delete(key_of(pod), uid=pod["metadata"]["uid"], grace=0)
    except ClusterError as error:
        if error.code not in (404, 409):
            raise


def _belongs(pod: Manifest, uid: str) -> bool:
    return any(reference["uid"] == uid for reference in pod["metadata"].get("ownerReferences") or ())


def _label(pod: Manifest, name: str) -> str | None:
    found: str | None = (pod["metadata"].get("labels") or {}).get(name)
    return found
