"""Compares Pod templates and builds the ReplicaSet of a Deployment: name, annotations, revision.

In: a Deployment and ReplicaSets. Out: manifests and answers. Never: writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from argosy.annotations import LAST_APPLIED
from argosy.kube.objects import Manifest, get_annotation
from argosy.sandbox.simulators.owner_references_and_marks import build_owner_reference, hash_to_name_suffix
from argosy.sandbox.simulators.simulation_annotations import SIMULATION_ANNOTATIONS as WISHES

TEMPLATE_HASH_LABEL: Final = "pod-template-hash"
REVISION_ANNOTATION: Final = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS_ANNOTATION: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS_ANNOTATION: Final = "deployment.kubernetes.io/max-replicas"
# Simulation annotations are read from the object that has them; a copy would outlive the original.
NOT_COPIED_ANNOTATIONS: Final = (
    LAST_APPLIED,
    REVISION_ANNOTATION,
    DESIRED_REPLICAS_ANNOTATION,
    MAX_REPLICAS_ANNOTATION,
    "deployment.kubernetes.io/revision-history",
    *WISHES,
)


def hash_pod_template(template: Manifest, collisions: int = 0) -> str:
    """Hash a Pod template to ten characters."""
    text = json.dumps(_drop_nulls(template), sort_keys=True)
    return hash_to_name_suffix(f"{text}/{collisions}" if collisions else text, 10)


def has_same_template(replica_set: Manifest, template: Manifest) -> bool:
    return bool(
        _drop_nulls(_remove_hash_label(replica_set["spec"]["template"])) == _drop_nulls(_remove_hash_label(template))
    )


def read_revision(replica_set: Manifest) -> int:
    text = get_annotation(replica_set, REVISION_ANNOTATION)
    return int(text) if text.isdigit() else 0


def select_copied_annotations(deployment: Manifest) -> dict[str, str]:
    annotations = deployment["metadata"].get("annotations") or {}
    return {name: value for name, value in annotations.items() if name not in NOT_COPIED_ANNOTATIONS}


def build_replica_set(deployment: Manifest, *, replicas: int, max_replicas: int, revision: int) -> Manifest:
    spec, metadata = deployment["spec"], deployment["metadata"]
    collisions = int((deployment.get("status") or {}).get("collisionCount") or 0)
    template_hash = hash_pod_template(spec["template"], collisions)
    template_metadata = spec["template"].get("metadata") or {}
    labels = {**(template_metadata.get("labels") or {}), TEMPLATE_HASH_LABEL: template_hash}
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), TEMPLATE_HASH_LABEL: template_hash}
    replica_set_spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": selector,
        "template": {**spec["template"], "metadata": {**template_metadata, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        replica_set_spec["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{template_hash}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {
                **select_copied_annotations(deployment),
                **build_revision_annotations(spec.get("replicas", 1), max_replicas, revision),
            },
            "ownerReferences": [build_owner_reference(deployment)],
        },
        "spec": replica_set_spec,
    }


def build_revision_annotations(desired_replicas: int, max_replicas: int, revision: int) -> dict[str, str]:
    return {
        DESIRED_REPLICAS_ANNOTATION: str(desired_replicas),
        MAX_REPLICAS_ANNOTATION: str(max_replicas),
        REVISION_ANNOTATION: str(revision),
    }


def sort_by_age(replica_sets: Sequence[Manifest]) -> list[Manifest]:
    return sorted(
        replica_sets,
        key=lambda replica_set: (replica_set["metadata"]["creationTimestamp"], replica_set["metadata"]["name"]),
    )


def _remove_hash_label(template: Manifest) -> Manifest:
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != TEMPLATE_HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}}


def _drop_nulls(value: Any) -> Any:
    """Drop null values, because servers either store or omit them."""
    if isinstance(value, dict):
        return {name: _drop_nulls(item) for name, item in value.items() if item is not None}
    return [_drop_nulls(item) for item in value] if isinstance(value, list) else value
