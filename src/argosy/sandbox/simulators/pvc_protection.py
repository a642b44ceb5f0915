"""Keeps a PersistentVolumeClaim that is being deleted as long as a Pod uses it.

In: a claim. Out: a finalizer on each new claim, and its removal once no Pod uses the claim. Never: deletes a claim.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.client import Admitter
from argosy.kube.controller import Cache, Context
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import CLAIM, POD, is_played_by_others
from argosy.sandbox.simulators.volumes import claims_of
from argosy.sandbox.simulators.writes import change

KEPT: Final = "kubernetes.io/pvc-protection"


def protected(new: Manifest, old: Manifest | None) -> Manifest:
    """Add the pvc-protection finalizer to a new claim."""
    metadata = new["metadata"]
    if old is not None or is_kept(new) or is_played_by_others(new):
        return new
    return {**new, "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), KEPT]}}


ADMITTER: Final = Admitter(CLAIM, "storageobjectinuseprotection", "kube-apiserver", protected)


def is_kept(claim: Manifest) -> bool:
    return KEPT in (claim["metadata"].get("finalizers") or ())


async def release(claim: Manifest, context: Context) -> bool:
    """Remove the finalizer; return False if a Pod still uses the claim."""
    if _is_used(claim, context.cache):
        return False
    others = [each for each in claim["metadata"]["finalizers"] if each != KEPT]
    await change(claim, {"metadata": {"finalizers": others or None}}, context.cluster)
    return True


def _is_used(claim: Manifest, cache: Cache) -> bool:
    """k8s: any Pod with a Node uses its claims, even a finished one; a Pod without a Node is no longer admitted."""
    name = claim["metadata"]["name"]
    pods = cache.list(POD, namespace=claim["metadata"]["namespace"])
    return any(pod["spec"].get("nodeName") and name in claims_of(pod) for pod in pods)
