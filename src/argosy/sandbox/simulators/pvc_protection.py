"""Keeps a claim that is being deleted as long as a Pod uses it.

In: a claim. Out: a finalizer on each new one, and its removal once no Pod is in the way. Never: deletes anything.
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
    metadata = new["metadata"]
    if old is not None or is_kept(new) or is_played_by_others(new):
        return new
    return {**new, "metadata": {**metadata, "finalizers": [*(metadata.get("finalizers") or ()), KEPT]}}


ADMITTER: Final = Admitter(CLAIM, "storageobjectinuseprotection", "kube-apiserver", protected)


def is_kept(claim: Manifest) -> bool:
    return KEPT in (claim["metadata"].get("finalizers") or ())


async def release(claim: Manifest, context: Context) -> bool:
    """Whether it may go now."""
    if _is_used(claim, context.cache):
        return False
    others = [each for each in claim["metadata"]["finalizers"] if each != KEPT]
    await change(claim, {"metadata": {"finalizers": others or None}}, context.cluster)
    return True


def _is_used(claim: Manifest, cache: Cache) -> bool:
    """k8s: by any Pod that has a Node, be it at its end; one without a Node is not let in any more."""
    name = claim["metadata"]["name"]
    pods = cache.list(POD, namespace=claim["metadata"]["namespace"])
    return any(pod["spec"].get("nodeName") and name in claims_of(pod) for pod in pods)
