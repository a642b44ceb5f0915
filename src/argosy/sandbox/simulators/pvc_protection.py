"""Keeps a PersistentVolumeClaim that is being deleted as long as a Pod uses it.

In: a claim. Out: a finalizer on each new claim, and its removal once no Pod uses the claim. Never: deletes a claim.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.client import AdmissionHandler
from argosy.kube.controller import ControllerContext, InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import PERSISTENT_VOLUME_CLAIM, POD
from argosy.sandbox.simulators.conditional_writes import patch_object
from argosy.sandbox.simulators.owner_references_and_marks import is_simulated_by_other_addon
from argosy.sandbox.simulators.volume_selection import list_claim_names

PVC_PROTECTION_FINALIZER: Final = "kubernetes.io/pvc-protection"


def add_finalizer(new: Manifest, old: Manifest | None) -> Manifest:
    """Add the pvc-protection finalizer to a new claim."""
    metadata = new["metadata"]
    if old is not None or has_protection_finalizer(new) or is_simulated_by_other_addon(new):
        return new
    return {
        **new,
        "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), PVC_PROTECTION_FINALIZER]},
    }


ADMISSION_HANDLER: Final = AdmissionHandler(
    PERSISTENT_VOLUME_CLAIM, "storageobjectinuseprotection", "kube-apiserver", add_finalizer
)


def has_protection_finalizer(claim: Manifest) -> bool:
    return PVC_PROTECTION_FINALIZER in (claim["metadata"].get("finalizers") or ())


async def remove_finalizer_if_unused(claim: Manifest, context: ControllerContext) -> bool:
    """Remove the finalizer; return False if a Pod still uses the claim."""
    if _is_used(claim, context.cache):
        return False
    other_finalizers = [
        finalizer for finalizer in claim["metadata"]["finalizers"] if finalizer != PVC_PROTECTION_FINALIZER
    ]
    await patch_object(claim, {"metadata": {"finalizers": other_finalizers or None}}, context.cluster)
    return True


def _is_used(claim: Manifest, cache: InformerCache) -> bool:
    """k8s: any Pod with a Node uses its claims, even a finished one; a Pod without a Node is no longer admitted."""
    name = claim["metadata"]["name"]
    pods = cache.list(POD, namespace=claim["metadata"]["namespace"])
    return any(pod["spec"].get("nodeName") and name in list_claim_names(pod) for pod in pods)
