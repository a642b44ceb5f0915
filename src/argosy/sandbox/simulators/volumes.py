"""Matches claims with volumes: the claims of a Pod, the storage class of a claim, the volume to provision.

In: manifests, a cache. Out: manifests and answers. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.controller import Cache
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity
from argosy.sandbox.simulators.constants import BY, STORAGE_CLASS, own_key

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
# k8s: a CSI driver name follows rules that a provisioner name need not
DRIVER: Final = "volumes.sandbox.argosy.dev"


def claims_of(pod: Manifest) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]


def class_of(claim: Manifest, cache: Cache) -> Manifest | None:
    name = claim["spec"].get("storageClassName") or ""
    return cache.get(own_key(STORAGE_CLASS, "", name)) if name else None


def waits_for_consumer(claim: Manifest, cache: Cache) -> bool:
    found = class_of(claim, cache)
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def size_of(claim: Manifest) -> str:
    return str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or "0")


def volume_for(claim: Manifest, storage: Manifest) -> Manifest:
    """Build the volume that a storage class provisions; its name contains the claim's uid, so that a claim never gets
    two."""
    metadata = claim["metadata"]
    spec: dict[str, Any] = {
        "capacity": {"storage": size_of(claim)},
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        "persistentVolumeReclaimPolicy": storage.get("reclaimPolicy") or "Delete",
        "storageClassName": storage["metadata"]["name"],
        "claimRef": claim_reference(claim),
        "csi": {"driver": DRIVER, "volumeHandle": f"simulated-{metadata['uid']}"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {PROVISIONED_BY: storage["provisioner"], SIMULATED: BY},
        },
        "spec": spec,
    }


def claim_reference(claim: Manifest) -> dict[str, str]:
    metadata = claim["metadata"]
    named = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}


def belongs_to(volume: Manifest, claim: Manifest) -> bool:
    """k8s: a claimRef without a uid was written by hand, to reserve the volume for the claim of that name."""
    reference = volume["spec"].get("claimRef") or {}
    metadata = claim["metadata"]
    named = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return named and reference.get("uid") in (None, "", metadata["uid"])


def fitting(claim: Manifest, volumes: Sequence[Manifest]) -> Manifest | None:
    """Find the volume reserved for the claim, else the smallest free one that matches."""
    kept = [each for each in volumes if belongs_to(each, claim)]
    if kept:
        return kept[0]
    free = [each for each in volumes if not each["spec"].get("claimRef") and _fits(each, claim)]
    return min(free, key=lambda each: (quantity.parse(_capacity(each)), str(each["metadata"]["name"])), default=None)


def _fits(volume: Manifest, claim: Manifest) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    return (
        (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and (spec.get("volumeMode") or "Filesystem") == (wanted.get("volumeMode") or "Filesystem")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and quantity.compare(_capacity(volume), size_of(claim)) >= 0
    )


def _capacity(volume: Manifest) -> str:
    return str((volume["spec"].get("capacity") or {}).get("storage") or "0")
