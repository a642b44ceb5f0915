"""Matches claims with volumes: the claims of a Pod, the storage class of a claim, the volume to provision.

In: manifests, a cache. Out: manifests and answers. Never: writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.schema import quantity
from argosy.kube.well_known_kinds import STORAGE_CLASS
from argosy.sandbox.simulators.owner_references_and_marks import SIMULATED_NOTE, build_key

SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"
BOUND_BY_CONTROLLER_ANNOTATION: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED_ANNOTATION: Final = "pv.kubernetes.io/bind-completed"
PROVISIONED_BY_ANNOTATION: Final = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
# k8s: a CSI driver name follows rules that a provisioner name need not
CSI_DRIVER: Final = "volumes.sandbox.argosy.dev"


def list_claim_names(pod: Manifest) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        if claim := volume.get("persistentVolumeClaim"):
            yield claim["claimName"]


def find_storage_class(claim: Manifest, cache: InformerCache) -> Manifest | None:
    name = claim["spec"].get("storageClassName") or ""
    return cache.get(build_key(STORAGE_CLASS, "", name)) if name else None


def waits_for_consumer(claim: Manifest, cache: InformerCache) -> bool:
    storage_class = find_storage_class(claim, cache)
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def read_requested_size(claim: Manifest) -> str:
    return str(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage") or "0")


def build_volume(claim: Manifest, storage_class: Manifest) -> Manifest:
    """Build the volume that a storage class provisions; its name contains the claim's uid, so that a claim never gets
    two."""
    metadata = claim["metadata"]
    spec: dict[str, Any] = {
        "capacity": {"storage": read_requested_size(claim)},
        "accessModes": claim["spec"].get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
        "storageClassName": storage_class["metadata"]["name"],
        "claimRef": build_claim_reference(claim),
        "csi": {"driver": CSI_DRIVER, "volumeHandle": f"simulated-{metadata['uid']}"},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": f"pvc-{metadata['uid']}",
            "annotations": {PROVISIONED_BY_ANNOTATION: storage_class["provisioner"], SIMULATED: SIMULATED_NOTE},
        },
        "spec": spec,
    }


def build_claim_reference(claim: Manifest) -> dict[str, str]:
    metadata = claim["metadata"]
    fields = {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **fields}


def is_reserved_for(volume: Manifest, claim: Manifest) -> bool:
    """k8s: a claimRef without a uid was written by hand, to reserve the volume for the claim of that name."""
    reference = volume["spec"].get("claimRef") or {}
    metadata = claim["metadata"]
    is_named = (reference.get("namespace"), reference.get("name")) == (metadata["namespace"], metadata["name"])
    return is_named and reference.get("uid") in (None, "", metadata["uid"])


def find_matching_volume(claim: Manifest, volumes: Sequence[Manifest]) -> Manifest | None:
    """Find the volume reserved for the claim, else the smallest free one that matches."""
    reserved = [volume for volume in volumes if is_reserved_for(volume, claim)]
    if reserved:
        return reserved[0]
    free = [volume for volume in volumes if not volume["spec"].get("claimRef") and _matches_claim(volume, claim)]
    return min(
        free, key=lambda volume: (quantity.parse(_read_capacity(volume)), str(volume["metadata"]["name"])), default=None
    )


def _matches_claim(volume: Manifest, claim: Manifest) -> bool:
    spec, claim_spec = volume["spec"], claim["spec"]
    return (
        (spec.get("storageClassName") or "") == (claim_spec.get("storageClassName") or "")
        and (spec.get("volumeMode") or "Filesystem") == (claim_spec.get("volumeMode") or "Filesystem")
        and set(claim_spec.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and quantity.compare(_read_capacity(volume), read_requested_size(claim)) >= 0
    )


def _read_capacity(volume: Manifest) -> str:
    return str((volume["spec"].get("capacity") or {}).get("storage") or "0")
