"""Simulates the volume binder and every provisioner of PersistentVolumeClaims.

In: the key of a claim. Out: a volume of its own, both Bound; or Pending, as its storage class requires. Never: stores
data.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema import quantity
from argosy.sandbox.simulators import pvc_protection
from argosy.sandbox.simulators.constants import (
    CLAIM,
    POD,
    STORAGE_CLASS,
    VOLUME,
    is_dying,
    is_played_by_others,
    own_key,
    unmarked,
)
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.load_balancers import when_given
from argosy.sandbox.simulators.volumes import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    belongs_to,
    claim_reference,
    claims_of,
    class_of,
    fitting,
    size_of,
    volume_for,
)
from argosy.sandbox.simulators.writes import change, create_once, keep_status, patient, remove

FULL = "code = ResourceExhausted desc = no space is left"
ANSWERS = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}


def _claimed(volume: Manifest) -> Iterable[ResourceKey]:
    if reference := volume["spec"].get("claimRef"):
        yield own_key(CLAIM, reference.get("namespace") or "", reference["name"])


class Claims:
    name = "simulated-claims"

    def __init__(self) -> None:
        self._pending: set[ResourceKey] = set()
        self._going: set[ResourceKey] = set()  # claims being deleted that a Pod still uses
        self._told: dict[ResourceKey, Happening] = {}
        self._events = Recorder("persistentvolume-controller")
        self.watches = (
            Watch(CLAIM, unmarked),
            Watch(VOLUME, _claimed),
            Watch(VOLUME, self._waiting),
            Watch(STORAGE_CLASS, self._waiting),
            Watch(POD, self._used_by),
        )

    def _used_by(self, pod: Manifest) -> Iterable[ResourceKey]:
        for name in claims_of(pod) if self._going else ():
            if (key := own_key(CLAIM, pod["metadata"]["namespace"], name)) in self._going:
                yield key

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._pending)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._pending.discard(key)
        self._going.discard(key)
        claim = context.cache.get(key)
        if claim is None:
            self._told.pop(key, None)
            await _release(key, context)
            return None
        if is_played_by_others(claim):
            return None
        if is_dying(claim):
            if pvc_protection.is_kept(claim) and not await pvc_protection.release(claim, context):
                self._going.add(key)
            return None
        if (claim.get("status") or {}).get("phase") != "Bound":
            wait = await self._held(claim, context)
            if wait is None or wait > 0:
                return Requeue(wait) if wait else None
        volume = await self._volume(claim, context)
        if volume is not None:
            await _bind(claim, volume, context)
        elif (claim.get("status") or {}).get("phase") == "Bound":
            # k8s: a bound claim without its volume is Lost
            await keep_status(claim, {"phase": "Lost"}, context.cluster)
        else:
            self._pending.add(key)
            await self._tell(claim, _pending(claim, context.cache), context)
        return None

    async def _held(self, claim: Manifest, context: Context) -> float | None:
        """Return the seconds until the claim may be bound, or None if an injected fault prevents it."""
        wait = when_given(claim, context.clock.now())
        if wait is None:
            storage = claim["spec"].get("storageClassName") or ""
            message = f'failed to provision volume with StorageClass "{storage}": rpc error: {FULL}'
            await self._tell(claim, Happening("ProvisioningFailed", message, is_warning=True), context)
        return wait

    async def _tell(self, claim: Manifest, happening: Happening | None, context: Context) -> None:
        """Record an event once until it changes; k8s repeats it."""
        if happening is not None and happening != self._told.get(key_of(claim)):
            self._told[key_of(claim)] = happening
            await self._events.tell(claim, [happening], context)

    async def _volume(self, claim: Manifest, context: Context) -> Manifest | None:
        """Return the claim's volume; create one if its storage class provisions it now."""
        cache = context.cache
        if name := claim["spec"].get("volumeName"):
            found = cache.get(own_key(VOLUME, "", name))
            return found if found is not None and _is_free_for(found, claim) else None
        made = cache.get(own_key(VOLUME, "", f"pvc-{claim['metadata']['uid']}"))
        if made is not None:
            return made
        storage = class_of(claim, cache)
        waits = storage is not None and storage.get("volumeBindingMode") == "WaitForFirstConsumer"
        if waits and SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            return None
        if found := fitting(claim, [each for each in cache.list(VOLUME) if not is_dying(each)]):
            return found
        if storage is not None and storage["provisioner"] != NO_PROVISIONER:
            made = volume_for(claim, storage)
            if await create_once(made, context.cluster):  # its watch event triggers the next reconcile
                message = f"Successfully provisioned volume {made['metadata']['name']}"
                await self._tell(claim, Happening("ProvisioningSucceeded", message), context)
        return None


def _pending(claim: Manifest, cache: Cache) -> Happening | None:
    """Return the event that explains why the claim stays Pending, or None if it will be bound soon."""
    name, storage = claim["spec"].get("storageClassName") or "", class_of(claim, cache)
    if storage is not None and storage.get("volumeBindingMode") == "WaitForFirstConsumer":
        return Happening("WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    if name and storage is None:
        message = f'storageclass.storage.k8s.io "{name}" not found'
        return Happening("ProvisioningFailed", message, is_warning=True)
    if storage is None or storage["provisioner"] == NO_PROVISIONER:
        message = "no persistent volumes available for this claim and no storage class is set"
        return Happening("FailedBinding", message)
    return None


async def _bind(claim: Manifest, volume: Manifest, context: Context) -> None:
    """Bind the volume first: a Bound claim always has a Bound volume."""
    cluster, reference = context.cluster, volume["spec"].get("claimRef") or {}
    if reference.get("uid") != claim["metadata"]["uid"]:
        volume = await change(volume, {"spec": {"claimRef": claim_reference(claim)}}, cluster)
    await keep_status(volume, {"phase": "Bound"}, cluster)
    if claim["spec"].get("volumeName") != volume["metadata"]["name"]:
        patch = {"metadata": {"annotations": ANSWERS}, "spec": {"volumeName": volume["metadata"]["name"]}}
        claim = await change(claim, patch, cluster)
    capacity = await _grown(claim, volume, context)
    modes = volume["spec"].get("accessModes")
    wanted: dict[str, Any] = {"phase": "Bound", "accessModes": modes, "capacity": {"storage": capacity}}
    await keep_status(claim, wanted, cluster)


async def _grown(claim: Manifest, volume: Manifest, context: Context) -> str:
    """Return the capacity; expand the volume if the claim requests more and its storage class allows it."""
    has = str((volume["spec"].get("capacity") or {}).get("storage") or "0")
    storage = class_of(claim, context.cache)
    if storage is None or not storage.get("allowVolumeExpansion") or quantity.compare(has, size_of(claim)) >= 0:
        return has
    await change(volume, {"spec": {"capacity": {"storage": size_of(claim)}}}, context.cluster)
    return size_of(claim)


async def _release(key: ResourceKey, context: Context) -> None:
    """k8s: the reclaim policy of the volume decides what happens to it after its claim is deleted."""
    for volume in context.cache.list(VOLUME):
        reference = volume["spec"].get("claimRef") or {}
        is_its_own = (reference.get("namespace"), reference.get("name")) == (key.namespace, key.name)
        if not is_its_own or not reference.get("uid") or is_dying(volume):
            continue
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            await remove(volume, context.cluster)
        else:
            await keep_status(volume, {"phase": "Released"}, context.cluster)


def _is_free_for(volume: Manifest, claim: Manifest) -> bool:
    return not volume["spec"].get("claimRef") or belongs_to(volume, claim)
