"""Kinds, the "simulated" marker, owner references, stable names and Pods that all simulators share.

In, out: names and small manifests. Never: I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.names import GroupKind, ResourceKey, join_api_version
from argosy.kube.objects import Manifest, annotation, key_of

POD: Final = GroupKind("", "Pod")
NODE: Final = GroupKind("", "Node")
CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
VOLUME: Final = GroupKind("", "PersistentVolume")
STORAGE_CLASS: Final = GroupKind("storage.k8s.io", "StorageClass")
DEPLOYMENT: Final = GroupKind("apps", "Deployment")
REPLICA_SET: Final = GroupKind("apps", "ReplicaSet")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
DAEMON_SET: Final = GroupKind("apps", "DaemonSet")
CONTROLLER_REVISION: Final = GroupKind("apps", "ControllerRevision")
JOB: Final = GroupKind("batch", "Job")
CRON_JOB: Final = GroupKind("batch", "CronJob")
SERVICE: Final = GroupKind("", "Service")
ENDPOINTS: Final = GroupKind("", "Endpoints")
ENDPOINT_SLICE: Final = GroupKind("discovery.k8s.io", "EndpointSlice")
INGRESS: Final = GroupKind("networking.k8s.io", "Ingress")
AUTOSCALER: Final = GroupKind("autoscaling", "HorizontalPodAutoscaler")
BUDGET: Final = GroupKind("policy", "PodDisruptionBudget")
QUOTA: Final = GroupKind("", "ResourceQuota")

BY: Final = "simulated by argosy"
# k8s: the alphabet of generated names; it has no vowels, so that no words appear
LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


def told(message: str) -> str:
    """Append a note to a message for people that the object is simulated."""
    return f"{message} ({BY})"


def letters(text: str, count: int) -> str:
    """Derive a stable name suffix of `length` characters from a text."""
    return "".join(LETTERS[byte % len(LETTERS)] for byte in hashlib.sha256(text.encode()).digest()[:count])


def is_played_by_others(manifest: Manifest) -> bool:
    """True if another add-on simulates this object: it carries that add-on's mark.

    Nodes are marked by this add-on; no other add-on has Nodes.
    """
    return bool(annotation(manifest, SIMULATED))


def unmarked(manifest: Manifest) -> Iterable[ResourceKey]:
    """Watch handler: enqueue the object itself unless another add-on simulates it."""
    if not is_played_by_others(manifest):
        yield key_of(manifest)


def is_dying(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))


def owner_of(manifest: Manifest) -> Manifest | None:
    """Return the owner reference of the object's controller, or None."""
    references = manifest["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


def reference_to(owner: Manifest) -> Manifest:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def own_key(kind: GroupKind, namespace: str, name: str) -> ResourceKey:
    return ResourceKey(kind.group, kind.kind, namespace, name)


def pod_from(template: Manifest, owner: Manifest, name: str, labels: dict[str, str] | None = None) -> Manifest:
    """Build a Pod from a controller's Pod template."""
    about = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(about.get("labels") or {}), **(labels or {})},
        "ownerReferences": [reference_to(owner)],
    }
    for field in ("annotations", "finalizers"):
        if about.get(field):
            metadata[field] = about[field]
    return {
        "apiVersion": join_api_version("", "v1"),
        "kind": "Pod",
        "metadata": metadata,
        "spec": template["spec"],
    }
