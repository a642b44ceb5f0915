"""Simulates the operator: reconciles an Argo CD installation, without running it, from every ArgoCD resource.

In: the key of a namespace where something changed. Out: the ConfigMaps, Secrets and other objects of the installation;
the resource's status.
Never: keeps edits of argocd-cm, or of keys of argocd-rbac-cm that the resource sets.
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
from argosy.kube.well_known_kinds import ARGOCD, CONFIG_MAP, NAMESPACE, ROUTE, SECRET
from argosy.sandbox.simulators.openshift_gitops import argocd_instance_objects as parts
from argosy.sandbox.simulators.openshift_gitops import config_maps, settings_objects
from argosy.sandbox.simulators.openshift_gitops.argocd_cm_edit_events import find_edited_keys, report_edits
from argosy.sandbox.simulators.openshift_gitops.argocd_instance_objects import ArgoCDInstance
from argosy.sandbox.simulators.openshift_gitops.settings_objects import OwnedConfigMap
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


def enqueue_namespace_of_owned(manifest: Manifest) -> Iterable[ResourceKey]:
    references = manifest["metadata"].get("ownerReferences") or ()
    if any(reference["kind"] == ARGOCD.kind for reference in references):
        yield from enqueue_namespace(manifest)


def enqueue_namespace_of_settings(manifest: Manifest) -> Iterable[ResourceKey]:
    """Also without an owner: the operator hears of an object that loses it."""
    if manifest["metadata"]["name"] in settings_objects.OWNER_RESTORED:
        yield from enqueue_namespace(manifest)
    else:
        yield from enqueue_namespace_of_owned(manifest)


class ArgoCDOperator:
    name = "argocd-operator"
    watches = (
        Watch(ARGOCD, enqueue_namespace),
        Watch(CONFIG_MAP, enqueue_namespace_of_settings, metadata_only=True),
        Watch(SECRET, enqueue_namespace_of_owned, metadata_only=True),
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
        if problem := config_maps.find_sign_on_problem(instance.spec):
            await _update_status(instance, cluster, problem=problem, sign_on="Failed")
            return
        try:
            for secret in settings_objects.build_secrets(instance):
                await _create_or_correct_secret(secret, cluster)
            for config_map in settings_objects.list_config_maps(instance):
                await self._write_config_map(instance, config_map, context)
            await _apply_components(instance, cluster)
        except Invalid as error:  # only a change of the resource can fix it
            await _update_status(instance, cluster, problem=error.message)
            raise UserError(error.message, where=f"ArgoCD {instance.namespace}/{instance.name}") from error
        await _update_status(instance, cluster)

    async def _write_config_map(
        self, instance: ArgoCDInstance, config_map: OwnedConfigMap, context: ControllerContext
    ) -> None:
        cluster, desired = context.cluster, settings_objects.build_config_map(instance, config_map)
        key, where = key_of(desired), f"ArgoCD {instance.namespace}/{instance.name}"
        live = await cluster.get(key)
        if live is None:
            log.info("%s: creating ConfigMap %s", where, config_map.name)
            await cluster.create(desired)
            self._written[key] = config_map.initial_data
            return
        if config_map.correct is None:
            return
        live_data = live.get("data") or {}
        data = config_map.correct(live_data)
        references = live["metadata"].get("ownerReferences") or []
        if config_map.restores_owner:
            references = _restore_owner(references, instance.build_owner_reference())
        edited_keys = find_edited_keys(self._written.get(key), live_data, data)
        if live_data != data or references != (live["metadata"].get("ownerReferences") or []):
            metadata = {**live["metadata"], "ownerReferences": references}
            log.info("%s: ConfigMap %s differs: replacing it", where, config_map.name)
            await cluster.replace({**live, "metadata": metadata, "data": data})
            await report_edits(live, edited_keys, instance.name, context)
        self._written[key] = data


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


def _restore_owner(references: list[Manifest], own_reference: Manifest) -> list[Manifest]:
    """argo: whatever the first owner is, it becomes the ArgoCD resource; its flags and all other owners stay."""
    if not references:
        return [own_reference]
    names = {name: own_reference[name] for name in ("apiVersion", "kind", "name", "uid")}
    return [{**references[0], **names}, *references[1:]]


async def _apply_components(instance: ArgoCDInstance, cluster: Cluster) -> None:
    for manifest in (*parts.build_service_accounts(instance), parts.build_service(instance)):
        await cluster.apply(manifest, manager=FIELD_MANAGER, force=True)
    for field, manifest in parts.build_workloads(instance).items():
        await _apply_or_delete(manifest, cluster, is_wanted=instance.enabled_components[field])
    await _apply_or_delete(parts.build_route(instance), cluster, is_wanted=bool(instance.host))


async def _create_or_correct_secret(desired: Manifest, cluster: Cluster) -> None:
    live = await cluster.get(key_of(desired))
    if live is None:
        await cluster.create(desired)
    elif (corrected := settings_objects.correct_secret(live, desired)) is not None:
        await cluster.replace(corrected)


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


async def _update_status(instance: ArgoCDInstance, cluster: Cluster, *, problem: str = "", sign_on: str = "") -> None:
    states = await _read_component_states(instance, cluster)
    if sign_on:
        states["sso"] = sign_on
    host = "" if problem else instance.host
    status = build_argocd_status(instance.live, host=host, component_states=states, problem=problem)
    await update_status_if_changed(instance.live, status, cluster)


async def _read_component_states(instance: ArgoCDInstance, cluster: Cluster) -> dict[str, str | None]:
    """argo: a component is Running if its workload is there and ready, which it is at once here; else Unknown."""
    states: dict[str, str | None] = {}
    for field, manifest in parts.build_workloads(instance).items():
        exists = await cluster.get(key_of(manifest)) is not None
        states[field] = "Running" if exists else "Unknown"
    if not instance.enabled_components["notificationsController"]:
        states["notificationsController"] = None  # argo: only this component has no state while it is disabled
    return states
