"""Builds the objects an InferenceService owns: Deployments, Services, and a Route or an Ingress.

In: an InferenceService and the Pod template of each component. Out: manifests. Never: writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from argosy.annotations import FAIL
from argosy.kube.objects import Manifest, get_annotation
from argosy.sandbox.simulators.kserve.kinds_and_labels import (
    APP_LABEL,
    VISIBILITY_LABEL,
    build_component_name,
    has_revisions,
)
from argosy.sandbox.simulators.kserve.pod_specs import read_container_port
from argosy.sandbox.simulators.owner_references_and_marks import build_owner_reference, hash_to_name_suffix
from argosy.sandbox.simulators.simulation_annotations import read_simulation_annotations

REVISION_LABEL: Final = "serving.knative.dev/revision"
TEMPLATE_HASH_ANNOTATION: Final = "sandbox.argosy.dev/template"  # hash of the template that a revision was created from
STORAGE_FAULT: Final = "Storage"
SERVICE_PORT: Final = 80

ManifestFields = dict[str, Any]


def build_deployment(
    service: Manifest, component: str, template: ManifestFields, storage_problem: str, revision: str = ""
) -> Manifest:
    """Build a component's Deployment. With a storage problem, its Pods wait for their storage."""
    component_spec, labels = service["spec"][component], template["metadata"]["labels"]
    selector_labels = {APP_LABEL: labels[APP_LABEL]}
    name = build_component_name(service, component)
    annotations_to_set = {**read_simulation_annotations(service), **({FAIL: STORAGE_FAULT} if storage_problem else {})}
    if revision:
        name, selector_labels = f"{revision}-deployment", {REVISION_LABEL: revision}
        labels = {**labels, REVISION_LABEL: revision}
        template = {**template, "metadata": {**template["metadata"], "labels": labels}}
        annotations_to_set[TEMPLATE_HASH_ANNOTATION] = hash_text(serialize_template(template))
    strategy = {"strategy": component_spec["deploymentStrategy"]} if component_spec.get("deploymentStrategy") else {}
    replicas = max(int(component_spec.get("minReplicas") if component_spec.get("minReplicas") is not None else 1), 1)
    spec = {"replicas": replicas, "selector": {"matchLabels": selector_labels}, "template": template, **strategy}
    return _build_owned_object(service, "apps/v1", "Deployment", name, labels, annotations_to_set, spec)


def serialize_template(template: ManifestFields) -> str:
    """Serialize a template without its revision label."""
    labels = {name: value for name, value in template["metadata"]["labels"].items() if name != REVISION_LABEL}
    return json.dumps({**template, "metadata": {**template["metadata"], "labels": labels}}, sort_keys=True)


def hash_text(text: str) -> str:
    return hash_to_name_suffix(text, 10)


def choose_revision(
    service: Manifest, component: str, template: ManifestFields, deployments: Sequence[Manifest]
) -> str:
    """Return the revision of a known template, else the next one; empty if the mode has no revisions."""
    if not has_revisions(service):
        return ""
    digest, highest = hash_text(serialize_template(template)), 0
    for item in deployments:
        revision = str((item["metadata"].get("labels") or {}).get(REVISION_LABEL) or "")
        if get_annotation(item, TEMPLATE_HASH_ANNOTATION) == digest:
            return revision
        highest = max(highest, int(revision.rpartition("-")[2] or 0))
    component_status = ((service.get("status") or {}).get("components") or {}).get(component) or {}
    highest = max(highest, int(str(component_status.get("latestCreatedRevision") or "-0").rpartition("-")[2]))
    return f"{build_component_name(service, component)}-{highest + 1:05d}"


def build_service(service: Manifest, component: str, template: ManifestFields, revision: str = "") -> Manifest:
    labels = template["metadata"]["labels"]
    selector_labels = {REVISION_LABEL: revision} if revision else {APP_LABEL: labels[APP_LABEL]}
    port = {"name": "http", "port": SERVICE_PORT, "targetPort": read_container_port(template), "protocol": "TCP"}
    spec = {"selector": selector_labels, "ports": [port]}
    return _build_owned_object(service, "v1", "Service", build_component_name(service, component), labels, {}, spec)


def find_entry_component(service: Manifest) -> str:
    """Return the component that receives requests first."""
    return "transformer" if service["spec"].get("transformer") else "predictor"


def is_exposed(service: Manifest) -> bool:
    """odh: only services that request it are reachable from outside."""
    return (service["metadata"].get("labels") or {}).get(VISIBILITY_LABEL) == "exposed"


def build_route(service: Manifest) -> Manifest:
    metadata = service["metadata"]
    target = {"kind": "Service", "name": build_component_name(service, find_entry_component(service)), "weight": 100}
    tls = {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
    labels = {"inferenceservice-name": metadata["name"]}
    spec = {"to": target, "port": {"targetPort": "http"}, "tls": tls}
    return _build_owned_object(service, "route.openshift.io/v1", "Route", metadata["name"], labels, {}, spec)


def build_ingress(service: Manifest, domain: str) -> Manifest:
    metadata = service["metadata"]
    backend = {
        "service": {
            "name": build_component_name(service, find_entry_component(service)),
            "port": {"number": SERVICE_PORT},
        }
    }
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rule = {"host": build_external_host(service, domain), "http": {"paths": [path]}}
    spec = {"rules": [rule]}
    return _build_owned_object(service, "networking.k8s.io/v1", "Ingress", metadata["name"], {}, {}, spec)


def build_external_host(service: Manifest, domain: str) -> str:
    return f"{service['metadata']['name']}-{service['metadata']['namespace']}.{domain}"


def _build_owned_object(
    service: Manifest,
    api_version: str,
    kind: str,
    name: str,
    labels: dict[str, str],
    annotations: dict[str, str],
    spec: ManifestFields,
) -> Manifest:
    metadata: ManifestFields = {
        "name": name,
        "namespace": service["metadata"]["namespace"],
        "ownerReferences": [build_owner_reference(service)],
    }
    for field, value in (("labels", labels), ("annotations", annotations)):
        if value:
            metadata[field] = value
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}
