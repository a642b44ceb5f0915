"""Builds the Pods of a StatefulSet by ordinal, and their PersistentVolumeClaims.

In: a StatefulSet, an ordinal, a template. Out: manifests. Never: writes.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.controller_revisions import REVISION_HASH_LABEL
from argosy.sandbox.simulators.owner_references_and_marks import build_owner_reference, build_pod

POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


def list_ordinals(stateful_set: Manifest) -> range:
    start = int((stateful_set["spec"].get("ordinals") or {}).get("start") or 0)
    return range(start, start + int(stateful_set["spec"].get("replicas", 1)))


def read_partition(stateful_set: Manifest) -> int:
    """Return the first ordinal that a rolling update replaces."""
    rolling_update = (stateful_set["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return list_ordinals(stateful_set).start + int(rolling_update.get("partition") or 0)


def uses_rolling_update(stateful_set: Manifest) -> bool:
    return bool((stateful_set["spec"].get("updateStrategy") or {}).get("type") != "OnDelete")


def creates_pods_in_order(stateful_set: Manifest) -> bool:
    return bool(stateful_set["spec"].get("podManagementPolicy") != "Parallel")


def read_ordinal(pod: Manifest, stateful_set: Manifest) -> int:
    """Return the ordinal in the Pod's name, or -1 if the name is not from this set."""
    name, _, number = str(pod["metadata"]["name"]).rpartition("-")
    return int(number) if name == stateful_set["metadata"]["name"] and number.isdigit() else -1


def read_pod_revision(pod: Manifest) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_HASH_LABEL) or "")


# -- Pods and claims -----------------------------------------------------------------------------------------------


def build_stateful_pod(stateful_set: Manifest, ordinal: int, template: Manifest, revision: str) -> Manifest:
    name = f"{stateful_set['metadata']['name']}-{ordinal}"
    pod = build_pod(
        template,
        stateful_set,
        name,
        {REVISION_HASH_LABEL: revision, POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)},
    )
    spec: dict[str, Any] = copy.copy(pod["spec"])
    spec["hostname"] = name
    if service_name := stateful_set["spec"].get("serviceName"):
        spec["subdomain"] = service_name
    claim_template_names = [
        _read_claim_template_name(item) for item in stateful_set["spec"].get("volumeClaimTemplates") or ()
    ]
    volumes = [
        *(item for item in spec.get("volumes") or () if item["name"] not in claim_template_names),
        *(
            {"name": item, "persistentVolumeClaim": {"claimName": _build_claim_name(stateful_set, item, ordinal)}}
            for item in claim_template_names
        ),
    ]
    if volumes:
        spec["volumes"] = volumes
    return {**pod, "spec": spec}


def build_claims(stateful_set: Manifest, ordinal: int) -> list[Manifest]:
    """k8s: claims outlive the StatefulSet unless its retention policy deletes them."""
    policy = stateful_set["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    labels = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
        template_metadata = template.get("metadata") or {}
        metadata: dict[str, Any] = {
            "name": _build_claim_name(stateful_set, _read_claim_template_name(template), ordinal),
            "namespace": stateful_set["metadata"]["namespace"],
            "labels": {**(template_metadata.get("labels") or {}), **labels},
        }
        if template_metadata.get("annotations"):
            metadata["annotations"] = template_metadata["annotations"]
        if policy.get("whenDeleted") == "Delete":
            metadata["ownerReferences"] = [build_non_controller_reference(stateful_set)]
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
        claims.append(claim)
    return claims


def build_non_controller_reference(owner: Manifest) -> Manifest:
    """Build an owner reference that is not the controller."""
    reference = build_owner_reference(owner)
    return {name: reference[name] for name in ("apiVersion", "kind", "name", "uid")}


def _read_claim_template_name(template: Manifest) -> str:
    return str(template["metadata"]["name"])


def _build_claim_name(stateful_set: Manifest, claim_template_name: str, ordinal: int) -> str:
    return f"{claim_template_name}-{stateful_set['metadata']['name']}-{ordinal}"
