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
from argosy.kube.controller import ControllerContext, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import ARGOCD, CONFIG_MAP, NAMESPACE, ROUTE
from argosy.sandbox.simulators.openshift_gitops import argocd_instance_objects as parts
from argosy.sandbox.simulators.openshift_gitops import kinds_and_labels
from argosy.sandbox.simulators.openshift_gitops.argocd_cm_edit_events import find_edited_keys, report_edits
from argosy.sandbox.simulators.openshift_gitops.argocd_instance_objects import ArgoCDInstance
from argosy.sandbox.simulators.openshift_gitops.simulated_object_statuses import build_argocd_status
from argosy.sandbox.simulators.openshift_gitops.workload_simulator import (
    WORKLOAD_KINDS,
    is_namespace_active,
    update_status_if_changed,
)

log = logging.getLogger(__name__)
FIELD_MANAGER: Final = "argocd-operator"


def enqueue_namespace(manifest: Manifest) -> Iterable[ResourceKey]:
    """argo: the names of the ConfigMaps are fixed, so a namespace holds one installation, and the namespace is the
    key."""
    yield ResourceKey(*NAMESPACE, "", manifest["metadata"]["namespace"])


def enqueue_namespace_of_settings(manifest: Manifest) -> Iterable[ResourceKey]:
    if manifest["metadata"]["name"] in (kinds_and_labels.SETTINGS_CONFIG_MAP, kinds_and_labels.POLICY_CONFIG_MAP):
        yield from enqueue_namespace(manifest)


def enqueue_namespace_of_owned(manifest: Manifest) -> Iterable[ResourceKey]:
    references = manifest["metadata"].get("ownerReferences") or ()
    if any(reference["kind"] == ARGOCD.kind for reference in references):
        yield from enqueue_namespace(manifest)


class ArgoCDOperator:
    name = "argocd-operator"
    watches = (
        Watch(ARGOCD, enqueue_namespace),
        Watch(CONFIG_MAP, enqueue_namespace_of_settings, metadata_only=True),
        Watch(ROUTE, enqueue_namespace_of_owned, metadata_only=True),
        *(Watch(kind, enqueue_namespace_of_owned, metadata_only=True) for kind in WORKLOAD_KINDS),
    )

    def __init__(self) -> None:
        # the data written last, by ConfigMap
        self._written: dict[ResourceKey, Mapping[str, str]] = {}

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> None:
        cluster = context.cluster
        if not await is_namespace_active(key.name, cluster):
            return
        instances = await _list_instances(key.name, cluster)
        for other in instances[1:]:
            problem = f"{instances[0].name} is already in this namespace, which can have only one ArgoCD; delete one"
            await _update_status(other, cluster, problem=problem)
        if instances:
            await self._install(instances[0], context)

    async def _install(self, instance: ArgoCDInstance, context: ControllerContext) -> None:
        cluster = context.cluster
        try:
            for name, data in parts.build_config_data(instance).items():
                await self._write_config_map(instance, name, data, context)
            await _apply_components(instance, cluster)
        except Invalid as error:  # only a change of the resource can fix it
            await _update_status(instance, cluster, problem=error.message)
            raise UserError(error.message, where=f"ArgoCD {instance.namespace}/{instance.name}") from error
        await _update_status(instance, cluster)

    async def _write_config_map(
        self, instance: ArgoCDInstance, name: str, data: Mapping[str, str], context: ControllerContext
    ) -> None:
        cluster, desired = context.cluster, {**parts.build_config_map(instance, name), "data": dict(data)}
        live = await cluster.get(key_of(desired))
        if live is None:
            log.info("ArgoCD %s/%s: creating ConfigMap %s", instance.namespace, instance.name, name)
            await cluster.create(desired)
            self._written[key_of(desired)] = data
            return
        references = _merge_owner_references(
            live["metadata"].get("ownerReferences") or [], instance.build_owner_reference()
        )
        edited_keys = find_edited_keys(self._written.get(key_of(desired)), live.get("data") or {})
        if live.get("data") != data or references != live["metadata"].get("ownerReferences"):
            # argo: the data is replaced completely, which removes what others added
            metadata = {**live["metadata"], "ownerReferences": references}
            log.info("ArgoCD %s/%s: ConfigMap %s differs: replacing it", instance.namespace, instance.name, name)
            await cluster.replace({**live, "metadata": metadata, "data": dict(data)})
            await report_edits(live, edited_keys, instance.name, context)
        self._written[key_of(desired)] = data


async def _list_instances(namespace: str, cluster: Cluster) -> list[ArgoCDInstance]:
    """List the ArgoCD resources of a namespace, oldest first; only the oldest counts."""
    try:
        listing = await cluster.list(ARGOCD, namespace=namespace)
    except ClusterError as error:
        if error.code == 404:  # the CRD was deleted, and all resources with it
            return []
        raise
    remaining = [live for live in listing.items if not live["metadata"].get("deletionTimestamp")]
    return [ArgoCDInstance(live) for live in sorted(remaining, key=_age_sort_key)]


def _age_sort_key(live: Manifest) -> tuple[str, str]:
    return live["metadata"]["creationTimestamp"], live["metadata"]["name"]


def _merge_owner_references(references: list[Manifest], own_reference: Manifest) -> list[Manifest]:
    """argo: owner references of others stay."""
    other_references = [reference for reference in references if reference["kind"] != own_reference["kind"]]
    # k8s: an object can have only one controller
    if any(reference.get("controller") for reference in other_references):
        own_reference = {**own_reference, "controller": False}
    return [*other_references, own_reference]


async def _apply_components(instance: ArgoCDInstance, cluster: Cluster) -> None:
    await _create_if_absent(parts.build_admin_secret(instance), cluster)
    for manifest in (*parts.build_service_accounts(instance), parts.build_service(instance)):
        await cluster.apply(manifest, manager=FIELD_MANAGER, force=True)
    for field, manifest in parts.build_workloads(instance).items():
        await _apply_or_delete(manifest, cluster, is_wanted=instance.enabled_components[field])
    await _apply_or_delete(parts.build_route(instance), cluster, is_wanted=bool(instance.host))


async def _create_if_absent(manifest: Manifest, cluster: Cluster) -> None:
    """Create the object unless it exists."""
    if await cluster.get(key_of(manifest)) is None:
        await cluster.create(manifest)


async def _apply_or_delete(manifest: Manifest, cluster: Cluster, *, is_wanted: bool) -> None:
    if is_wanted:
        await cluster.apply(manifest, manager=FIELD_MANAGER, force=True)
        return
    live = await cluster.get(key_of(manifest))
    if live and live["metadata"].get("ownerReferences") == manifest["metadata"]["ownerReferences"]:
        try:
            await cluster.delete(key_of(live), uid=live["metadata"]["uid"])
        except Conflict:  # another object has this name now
            return


async def _update_status(instance: ArgoCDInstance, cluster: Cluster, problem: str = "") -> None:
    host = "" if problem else instance.host
    status = build_argocd_status(instance.live, host=host, components=instance.enabled_components, problem=problem)
    await update_status_if_changed(instance.live, status, cluster)
