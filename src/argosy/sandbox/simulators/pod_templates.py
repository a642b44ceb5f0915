"""Compares Pod templates and builds the ReplicaSet of a Deployment: name, annotations, revision.

In: a Deployment and ReplicaSets. Out: manifests and answers. Never: writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from argosy.annotations import LAST_APPLIED
from argosy.kube.objects import Manifest, annotation
from argosy.sandbox.simulators.constants import letters, reference_to
from argosy.sandbox.simulators.fault_injection import NAMES as WISHES

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
WANTED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
# Simulation annotations are read from the object that has them; a copy would outlive the original.
NOT_COPIED: Final = (LAST_APPLIED, REVISION, WANTED, MOST, "deployment.kubernetes.io/revision-history", *WISHES)


def fingerprint(template: Manifest, collisions: int = 0) -> str:
    """Hash a Pod template to ten characters."""
    text = json.dumps(_plain(template), sort_keys=True)
    return letters(f"{text}/{collisions}" if collisions else text, 10)


def is_of_template(replica_set: Manifest, template: Manifest) -> bool:
    return bool(_plain(_unhashed(replica_set["spec"]["template"])) == _plain(_unhashed(template)))


def revision_of(replica_set: Manifest) -> int:
    text = annotation(replica_set, REVISION)
    return int(text) if text.isdigit() else 0


def copied_annotations(deployment: Manifest) -> dict[str, str]:
    annotations = deployment["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in NOT_COPIED}


def new_replica_set(deployment: Manifest, *, size: int, most: int, revision: int) -> Manifest:
    spec, metadata = deployment["spec"], deployment["metadata"]
    collisions = int((deployment.get("status") or {}).get("collisionCount") or 0)
    mark = fingerprint(spec["template"], collisions)
    about = spec["template"].get("metadata") or {}
    labels = {**(about.get("labels") or {}), HASH: mark}
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH: mark}
    made: dict[str, Any] = {
        "replicas": size,
        "selector": selector,
        "template": {**spec["template"], "metadata": {**about, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        made["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{mark}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {**copied_annotations(deployment), **marks(spec.get("replicas", 1), most, revision)},
            "ownerReferences": [reference_to(deployment)],
        },
        "spec": made,
    }


def marks(wanted: int, most: int, revision: int) -> dict[str, str]:
    return {WANTED: str(wanted), MOST: str(most), REVISION: str(revision)}


def by_age(replica_sets: Sequence[Manifest]) -> list[Manifest]:
    return sorted(replica_sets, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))


def _unhashed(template: Manifest) -> Manifest:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _plain(value: Any) -> Any:
    """Drop null values, because servers either store or omit them."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if each is not None}
    return [_plain(each) for each in value] if isinstance(value, list) else value
