"""Simulates the operator: reconciles an Argo CD installation, without running it, from every ArgoCD resource.

In: the key of a namespace where something changed. Out: argocd-cm and argocd-rbac-cm, recomputed completely; the
objects of the installation; the resource's status.
Never: merges with edits of those ConfigMaps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from argosy.errors import ClusterError, Conflict, Invalid, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller import Context, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.openshift_gitops import constants
from argosy.sandbox.simulators.openshift_gitops import instance as parts
from argosy.sandbox.simulators.openshift_gitops.hand_edits import find_edited_keys, report_edits
from argosy.sandbox.simulators.openshift_gitops.instance import Instance
from argosy.sandbox.simulators.openshift_gitops.statuses import of_argocd
from argosy.sandbox.simulators.openshift_gitops.workload_simulator import WORKLOADS, keep_status, lives

log = logging.getLogger(__name__)
MANAGER: Final = "argocd-operator"


def place(manifest: Manifest) -> Iterable[ResourceKey]:
    """argo: the names of the ConfigMaps are fixed, so a namespace holds one installation, and the namespace is the
    key."""
    yield ResourceKey(*constants.NAMESPACE, "", manifest["metadata"]["namespace"])


def place_of_settings(manifest: Manifest) -> Iterable[ResourceKey]:
    if manifest["metadata"]["name"] in (constants.SETTINGS, constants.POLICY):
        yield from place(manifest)


def place_of_owned(manifest: Manifest) -> Iterable[ResourceKey]:
    references = manifest["metadata"].get("ownerReferences") or ()
    if any(reference["kind"] == constants.ARGOCD.kind for reference in references):
        yield from place(manifest)


class Operator:
    name = "argocd-operator"
    watches = (
        Watch(constants.ARGOCD, place),
        Watch(constants.CONFIG_MAP, place_of_settings, metadata_only=True),
        Watch(constants.ROUTE, place_of_owned, metadata_only=True),
        *(Watch(kind, place_of_owned, metadata_only=True) for kind in WORKLOADS),
    )

    def __init__(self) -> None:
        # the data written last, by ConfigMap
        self._written: dict[ResourceKey, Mapping[str, str]] = {}

    async def reconcile(self, key: ResourceKey, context: Context) -> None:
        cluster = context.cluster
        if not await lives(key.name, cluster):
            return
        instances = await _instances(key.name, cluster)
        for other in instances[1:]:
            said = f"{instances[0].name} is already in this namespace, which can have only one ArgoCD; delete one"
            await _tell(other, cluster, problem=said)
        if instances:
            await self._install(instances[0], context)

    async def _install(self, instance: Instance, context: Context) -> None:
        cluster = context.cluster
        try:
            for name, data in parts.data_of(instance).items():
                await self._keep_config_map(instance, name, data, context)
            await _keep_parts(instance, cluster)
        except Invalid as error:  # only a change of the resource can fix it
            await _tell(instance, cluster, problem=error.message)
            raise UserError(error.message, where=f"ArgoCD {instance.namespace}/{instance.name}") from error
        await _tell(instance, cluster)

    async def _keep_config_map(self, instance: Instance, name: str, data: Mapping[str, str], context: Context) -> None:
        cluster, wanted = context.cluster, {**parts.config_map(instance, name), "data": dict(data)}
        live = await cluster.get(key_of(wanted))
        if live is None:
            log.info("ArgoCD %s/%s: creating ConfigMap %s", instance.namespace, instance.name, name)
            await cluster.create(wanted)
            self._written[key_of(wanted)] = data
            return
        references = _repaired(live["metadata"].get("ownerReferences") or [], instance.reference())
        edited = find_edited_keys(self._written.get(key_of(wanted)), live.get("data") or {})
        if live.get("data") != data or references != live["metadata"].get("ownerReferences"):
            # argo: the data is replaced completely, which removes what others added
            metadata = {**live["metadata"], "ownerReferences": references}
            log.info("ArgoCD %s/%s: ConfigMap %s differs: replacing it", instance.namespace, instance.name, name)
            await cluster.replace({**live, "metadata": metadata, "data": dict(data)})
            await report_edits(live, edited, instance.name, context)
        self._written[key_of(wanted)] = data


async def _instances(namespace: str, cluster: Cluster) -> list[Instance]:
    """List the ArgoCD resources of a namespace, oldest first; only the oldest counts."""
    try:
        listing = await cluster.list(constants.ARGOCD, namespace=namespace)
    except ClusterError as error:
        if error.code == 404:  # the CRD was deleted, and all resources with it
            return []
        raise
    living = [live for live in listing.items if not live["metadata"].get("deletionTimestamp")]
    return [Instance(live) for live in sorted(living, key=_age)]


def _age(live: Manifest) -> tuple[str, str]:
    return live["metadata"]["creationTimestamp"], live["metadata"]["name"]


def _repaired(references: list[Manifest], right: Manifest) -> list[Manifest]:
    """argo: owner references of others stay."""
    others = [each for each in references if each["kind"] != right["kind"]]
    if any(each.get("controller") for each in others):  # k8s: an object can have only one controller
        right = {**right, "controller": False}
    return [*others, right]


async def _keep_parts(instance: Instance, cluster: Cluster) -> None:
    await _create(parts.password(instance), cluster)
    for manifest in (*parts.accounts(instance), parts.service(instance)):
        await cluster.apply(manifest, manager=MANAGER, force=True)
    for field, manifest in parts.workloads(instance).items():
        await _keep(manifest, cluster, is_wanted=instance.parts[field])
    await _keep(parts.route(instance), cluster, is_wanted=bool(instance.host))


async def _create(manifest: Manifest, cluster: Cluster) -> None:
    """Create the object unless it exists."""
    if await cluster.get(key_of(manifest)) is None:
        await cluster.create(manifest)


async def _keep(manifest: Manifest, cluster: Cluster, *, is_wanted: bool) -> None:
    if is_wanted:
        await cluster.apply(manifest, manager=MANAGER, force=True)
        return
    live = await cluster.get(key_of(manifest))
    if live and live["metadata"].get("ownerReferences") == manifest["metadata"]["ownerReferences"]:
        try:
            await cluster.delete(key_of(live), uid=live["metadata"]["uid"])
        except Conflict:  # another object has this name now
            return


async def _tell(instance: Instance, cluster: Cluster, problem: str = "") -> None:
    host = "" if problem else instance.host
    status = of_argocd(instance.live, host=host, parts=instance.parts, problem=problem)
    await keep_status(instance.live, status, cluster)
