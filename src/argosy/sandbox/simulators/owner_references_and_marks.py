"""Kinds, the "simulated" marker, owner references, stable names and Pods that all simulators share.

In, out: names and small manifests. Never: I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

from argosy.annotations import SIMULATED
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey, join_api_version

CONTROLLER_REVISION: Final = GroupKind("apps", "ControllerRevision")
ENDPOINTS: Final = GroupKind("", "Endpoints")
ENDPOINT_SLICE: Final = GroupKind("discovery.k8s.io", "EndpointSlice")
HORIZONTAL_POD_AUTOSCALER: Final = GroupKind("autoscaling", "HorizontalPodAutoscaler")
POD_DISRUPTION_BUDGET: Final = GroupKind("policy", "PodDisruptionBudget")

SIMULATED_NOTE: Final = "simulated by argosy"
SIMULATED_CONDITION: Final = "sandbox.argosy.dev/Simulated"  # marks objects in whose messages tools expect a real text
# k8s: the alphabet of generated names; it has no vowels, so that no words appear
NAME_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def append_simulated_note(message: str) -> str:
    """Append a note to a message for people that the object is simulated."""
    return f"{message} ({SIMULATED_NOTE})"


def hash_to_name_suffix(text: str, length: int) -> str:
    """Derive a stable name suffix of `length` characters from a text."""
    return "".join(
        NAME_SUFFIX_ALPHABET[byte % len(NAME_SUFFIX_ALPHABET)]
        for byte in hashlib.sha256(text.encode()).digest()[:length]
    )


def is_simulated_by_other_addon(manifest: Manifest) -> bool:
    """True if another add-on simulates this object: it carries that add-on's mark.

    Nodes are marked by this add-on; no other add-on has Nodes.
    """
    return bool(get_annotation(manifest, SIMULATED))


def enqueue_if_unmarked(manifest: Manifest) -> Iterable[ResourceKey]:
    """Watch handler: enqueue the object itself unless another add-on simulates it."""
    if not is_simulated_by_other_addon(manifest):
        yield key_of(manifest)


def is_being_deleted(manifest: Manifest) -> bool:
    return bool(manifest["metadata"].get("deletionTimestamp"))


def find_controller_reference(manifest: Manifest) -> Manifest | None:
    """Return the owner reference of the object's controller, or None."""
    references = manifest["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), None)


def build_owner_reference(owner: Manifest) -> Manifest:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def build_key(kind: GroupKind, namespace: str, name: str) -> ResourceKey:
    return ResourceKey(kind.group, kind.kind, namespace, name)


def build_pod(template: Manifest, owner: Manifest, name: str, labels: dict[str, str] | None = None) -> Manifest:
    """Build a Pod from a controller's Pod template."""
    template_metadata = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": {**(template_metadata.get("labels") or {}), **(labels or {})},
        "ownerReferences": [build_owner_reference(owner)],
    }
    for field in ("annotations", "finalizers"):
        if template_metadata.get(field):
            metadata[field] = template_metadata[field]
    return {
        "apiVersion": join_api_version("", "v1"),
        "kind": "Pod",
        "metadata": metadata,
        "spec": template["spec"],
    }
