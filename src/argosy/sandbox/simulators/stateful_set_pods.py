"""Builds the Pods of a StatefulSet by ordinal, and their PersistentVolumeClaims.

In: a StatefulSet, an ordinal, a template. Out: manifests. Never: writes.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import pod_from, reference_to
from argosy.sandbox.simulators.controller_revisions import REVISION

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def ordinals(live: Manifest) -> range:
    start = int((live["spec"].get("ordinals") or {}).get("start") or 0)
    return range(start, start + int(live["spec"].get("replicas", 1)))


def partition(live: Manifest) -> int:
    """Return the first ordinal that a rolling update replaces."""
    rolling = (live["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    return ordinals(live).start + int(rolling.get("partition") or 0)


def is_rolling(live: Manifest) -> bool:
    return bool((live["spec"].get("updateStrategy") or {}).get("type") != "OnDelete")


def is_ordered(live: Manifest) -> bool:
    return bool(live["spec"].get("podManagementPolicy") != "Parallel")


def ordinal_of(pod: Manifest, live: Manifest) -> int:
    """Return the ordinal in the Pod's name, or -1 if the name is not from this set."""
    name, _, number = str(pod["metadata"]["name"]).rpartition("-")
    return int(number) if name == live["metadata"]["name"] and number.isdigit() else -1


def revision_of(pod: Manifest) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION) or "")


# -- Pods and claims -----------------------------------------------------------------------------------------------


def pod_for(live: Manifest, ordinal: int, template: Manifest, revision: str) -> Manifest:
    name = f"{live['metadata']['name']}-{ordinal}"
    pod = pod_from(template, live, name, {REVISION: revision, POD_NAME: name, POD_INDEX: str(ordinal)})
    spec: dict[str, Any] = copy.copy(pod["spec"])
    spec["hostname"] = name
    if service := live["spec"].get("serviceName"):
        spec["subdomain"] = service
    claimed = [_claim_template_name(each) for each in live["spec"].get("volumeClaimTemplates") or ()]
    volumes = [
        *(each for each in spec.get("volumes") or () if each["name"] not in claimed),
        *({"name": each, "persistentVolumeClaim": {"claimName": _claim_name(live, each, ordinal)}} for each in claimed),
    ]
    if volumes:
        spec["volumes"] = volumes
    return {**pod, "spec": spec}


def claims_for(live: Manifest, ordinal: int) -> list[Manifest]:
    """k8s: claims outlive the StatefulSet unless its retention policy deletes them."""
    policy = live["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    labels = (live["spec"].get("selector") or {}).get("matchLabels") or {}
    made = []
    for template in live["spec"].get("volumeClaimTemplates") or ():
        about = template.get("metadata") or {}
        metadata: dict[str, Any] = {
            "name": _claim_name(live, _claim_template_name(template), ordinal),
            "namespace": live["metadata"]["namespace"],
            "labels": {**(about.get("labels") or {}), **labels},
        }
        if about.get("annotations"):
            metadata["annotations"] = about["annotations"]
        if policy.get("whenDeleted") == "Delete":
            metadata["ownerReferences"] = [shared_reference(live)]
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
        made.append(claim)
    return made


def shared_reference(owner: Manifest) -> Manifest:
    """Build an owner reference that is not the controller."""
    reference = reference_to(owner)
    return {name: reference[name] for name in ("apiVersion", "kind", "name", "uid")}


def _claim_template_name(template: Manifest) -> str:
    return str(template["metadata"]["name"])


def _claim_name(live: Manifest, template: str, ordinal: int) -> str:
    return f"{template}-{live['metadata']['name']}-{ordinal}"
