"""Simulates the volume binder and every provisioner of PersistentVolumeClaims.

In: the key of a claim. Out: a volume of its own, both Bound; or Pending, as its storage class requires. Never: stores
data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.kube.controller import ControllerContext, InformerCache, Requeue, Watch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema import quantity
from argosy.kube.well_known_kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD, STORAGE_CLASS
from argosy.sandbox.simulators import pvc_protection
from argosy.sandbox.simulators.conditional_writes import (
    create_if_absent,
    delete_object,
    patch_object,
    requeue_on_conflict,
    update_status_if_changed,
)
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.external_addresses import compute_provisioning_delay
from argosy.sandbox.simulators.owner_references_and_marks import (
    build_key,
    enqueue_if_unmarked,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.volume_selection import (
    BIND_COMPLETED_ANNOTATION,
    BOUND_BY_CONTROLLER_ANNOTATION,
    NO_PROVISIONER,
    SELECTED_NODE_ANNOTATION,
    build_claim_reference,
    build_volume,
    find_matching_volume,
    find_storage_class,
    is_reserved_for,
    list_claim_names,
    read_requested_size,
)

OUT_OF_SPACE_ERROR = "code = ResourceExhausted desc = no space is left"
BOUND_ANNOTATIONS = {BIND_COMPLETED_ANNOTATION: "yes", BOUND_BY_CONTROLLER_ANNOTATION: "yes"}


def _enqueue_claim_of_volume(volume: Manifest) -> Iterable[ResourceKey]:
    if reference := volume["spec"].get("claimRef"):
        yield build_key(PERSISTENT_VOLUME_CLAIM, reference.get("namespace") or "", reference["name"])


class PersistentVolumeClaimController:
    name = "simulated-claims"

    def __init__(self) -> None:
        self._pending: set[ResourceKey] = set()
        self._deleting_in_use: set[ResourceKey] = set()  # claims being deleted that a Pod still uses
        self._last_events: dict[ResourceKey, EventDraft] = {}
        self._events = EventRecorder("persistentvolume-controller")
        self.watches = (
            Watch(PERSISTENT_VOLUME_CLAIM, enqueue_if_unmarked),
            Watch(PERSISTENT_VOLUME, _enqueue_claim_of_volume),
            Watch(PERSISTENT_VOLUME, self._enqueue_pending),
            Watch(STORAGE_CLASS, self._enqueue_pending),
            Watch(POD, self._enqueue_deleting_claims_of_pod),
        )

    def _enqueue_deleting_claims_of_pod(self, pod: Manifest) -> Iterable[ResourceKey]:
        for name in list_claim_names(pod) if self._deleting_in_use else ():
            if (key := build_key(PERSISTENT_VOLUME_CLAIM, pod["metadata"]["namespace"], name)) in self._deleting_in_use:
                yield key

    def _enqueue_pending(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._pending)

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        self._pending.discard(key)
        self._deleting_in_use.discard(key)
        claim = context.cache.get(key)
        if claim is None:
            self._last_events.pop(key, None)
            await _release_volumes(key, context)
            return None
        if is_simulated_by_other_addon(claim):
            return None
        if is_being_deleted(claim):
            if pvc_protection.has_protection_finalizer(claim) and not await pvc_protection.remove_finalizer_if_unused(
                claim, context
            ):
                self._deleting_in_use.add(key)
            return None
        if (claim.get("status") or {}).get("phase") != "Bound":
            wait = await self._compute_binding_delay(claim, context)
            if wait is None or wait > 0:
                return Requeue(wait) if wait else None
        volume = await self._find_or_provision_volume(claim, context)
        if volume is not None:
            await _bind(claim, volume, context)
        elif (claim.get("status") or {}).get("phase") == "Bound":
            # k8s: a bound claim without its volume is Lost
            await update_status_if_changed(claim, {"phase": "Lost"}, context.cluster)
        else:
            self._pending.add(key)
            await self._record_on_change(claim, _explain_pending(claim, context.cache), context)
        return None

    async def _compute_binding_delay(self, claim: Manifest, context: ControllerContext) -> float | None:
        """Return the seconds until the claim may be bound, or None if an injected fault prevents it."""
        wait = compute_provisioning_delay(claim, context.clock.now())
        if wait is None:
            storage_class_name = claim["spec"].get("storageClassName") or ""
            message = (
                f'failed to provision volume with StorageClass "{storage_class_name}": rpc error: {OUT_OF_SPACE_ERROR}'
            )
            await self._record_on_change(claim, EventDraft("ProvisioningFailed", message, is_warning=True), context)
        return wait

    async def _record_on_change(self, claim: Manifest, event: EventDraft | None, context: ControllerContext) -> None:
        """Record an event once until it changes; k8s repeats it."""
        if event is not None and event != self._last_events.get(key_of(claim)):
            self._last_events[key_of(claim)] = event
            await self._events.record(claim, [event], context)

    async def _find_or_provision_volume(self, claim: Manifest, context: ControllerContext) -> Manifest | None:
        """Return the claim's volume; create one if its storage class provisions it now."""
        cache = context.cache
        if name := claim["spec"].get("volumeName"):
            volume = cache.get(build_key(PERSISTENT_VOLUME, "", name))
            return volume if volume is not None and _is_free_for(volume, claim) else None
        new_volume = cache.get(build_key(PERSISTENT_VOLUME, "", f"pvc-{claim['metadata']['uid']}"))
        if new_volume is not None:
            return new_volume
        storage = find_storage_class(claim, cache)
        is_consumer_required = storage is not None and storage.get("volumeBindingMode") == "WaitForFirstConsumer"
        if is_consumer_required and SELECTED_NODE_ANNOTATION not in (claim["metadata"].get("annotations") or {}):
            return None
        if volume := find_matching_volume(
            claim, [candidate for candidate in cache.list(PERSISTENT_VOLUME) if not is_being_deleted(candidate)]
        ):
            return volume
        if storage is not None and storage["provisioner"] != NO_PROVISIONER:
            new_volume = build_volume(claim, storage)
            if await create_if_absent(new_volume, context.cluster):  # its watch event triggers the next reconcile
                message = f"Successfully provisioned volume {new_volume['metadata']['name']}"
                await self._record_on_change(claim, EventDraft("ProvisioningSucceeded", message), context)
        return None


def _explain_pending(claim: Manifest, cache: InformerCache) -> EventDraft | None:
    """Return the event that explains why the claim stays Pending, or None if it will be bound soon."""
    storage_class_name, storage_class = claim["spec"].get("storageClassName") or "", find_storage_class(claim, cache)
    if storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer":
        return EventDraft("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    if storage_class_name and storage_class is None:
        message = f'storageclass.storage.k8s.io "{storage_class_name}" not found'
        return EventDraft("ProvisioningFailed", message, is_warning=True)
    if storage_class is None or storage_class["provisioner"] == NO_PROVISIONER:
        message = "no persistent volumes available for this claim and no storage class is set"
        return EventDraft("FailedBinding", message)
    return None


async def _bind(claim: Manifest, volume: Manifest, context: ControllerContext) -> None:
    """Bind the volume first: a Bound claim always has a Bound volume."""
    cluster, reference = context.cluster, volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"]:
        volume = await patch_object(volume, {"spec": {"claimRef": build_claim_reference(claim)}}, cluster)
    await update_status_if_changed(volume, {"phase": "Bound"}, cluster)
    if claim["spec"].get("volumeName") != volume["metadata"]["name"]:
        patch = {"metadata": {"annotations": BOUND_ANNOTATIONS}, "spec": {"volumeName": volume["metadata"]["name"]}}
        claim = await patch_object(claim, patch, cluster)
    capacity = await _expand_if_requested(claim, volume, context)
    modes = volume["spec"].get("accessModes")
    new_status: dict[str, Any] = {"phase": "Bound", "accessModes": modes, "capacity": {"storage": capacity}}
    await update_status_if_changed(claim, new_status, cluster)


async def _expand_if_requested(claim: Manifest, volume: Manifest, context: ControllerContext) -> str:
    """Return the capacity; expand the volume if the claim requests more and its storage class allows it."""
    capacity = str((volume["spec"].get("capacity") or {}).get("storage") or "0")
    storage_class = find_storage_class(claim, context.cache)
    if (
        storage_class is None
        or not storage_class.get("allowVolumeExpansion")
        or quantity.compare(capacity, read_requested_size(claim)) >= 0
    ):
        return capacity
    await patch_object(volume, {"spec": {"capacity": {"storage": read_requested_size(claim)}}}, context.cluster)
    return read_requested_size(claim)


async def _release_volumes(claim_key: ResourceKey, context: ControllerContext) -> None:
    """k8s: the reclaim policy of the volume decides what happens to it after its claim is deleted."""
    for volume in context.cache.list(PERSISTENT_VOLUME):
        reference = volume["spec"].get("claimRef") or {}
        is_bound_to_claim = (reference.get("namespace"), reference.get("name")) == (claim_key.namespace, claim_key.name)
        if not is_bound_to_claim or not reference.get("uid") or is_being_deleted(volume):
            continue
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            await delete_object(volume, context.cluster)
        else:
            await update_status_if_changed(volume, {"phase": "Released"}, context.cluster)


def _is_free_for(volume: Manifest, claim: Manifest) -> bool:
    return not volume["spec"].get("claimRef") or is_reserved_for(volume, claim)
