"""Builds the objects an InferenceService owns: Deployments, Services, and a Route or an Ingress.

In: an InferenceService and the Pod template of each component. Out: manifests. Never: writes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from argosy.annotations import FAIL
from argosy.kube.objects import Manifest, annotation
from argosy.sandbox.simulators.constants import letters, reference_to
from argosy.sandbox.simulators.fault_injection import asked
from argosy.sandbox.simulators.kserve.constants import APP, VISIBILITY, has_revisions, part_name
from argosy.sandbox.simulators.kserve.pod_specs import port_of

REVISION: Final = "serving.knative.dev/revision"
TEMPLATE: Final = "sandbox.argosy.dev/template"  # hash of the template that a revision was created from
STORAGE: Final = "Storage"
PORT: Final = 80

Fields = dict[str, Any]


def deployment(service: Manifest, component: str, template: Fields, problem: str, revision: str = "") -> Manifest:
    """Build a component's Deployment. With a storage problem, its Pods wait for their storage."""
    part, labels = service["spec"][component], template["metadata"]["labels"]
    selected = {APP: labels[APP]}
    name = part_name(service, component)
    wishes = {**asked(service), **({FAIL: STORAGE} if problem else {})}
    if revision:
        name, selected = f"{revision}-deployment", {REVISION: revision}
        labels = {**labels, REVISION: revision}
        template = {**template, "metadata": {**template["metadata"], "labels": labels}}
        wishes[TEMPLATE] = digest_of(template_key(template))
    strategy = {"strategy": part["deploymentStrategy"]} if part.get("deploymentStrategy") else {}
    replicas = max(int(part.get("minReplicas") if part.get("minReplicas") is not None else 1), 1)
    spec = {"replicas": replicas, "selector": {"matchLabels": selected}, "template": template, **strategy}
    return _owned(service, "apps/v1", "Deployment", name, labels, wishes, spec)


def template_key(template: Fields) -> str:
    """Serialize a template without its revision label."""
    labels = {name: value for name, value in template["metadata"]["labels"].items() if name != REVISION}
    return json.dumps({**template, "metadata": {**template["metadata"], "labels": labels}}, sort_keys=True)


def digest_of(text: str) -> str:
    return letters(text, 10)


def revision_of(service: Manifest, component: str, template: Fields, deployments: Sequence[Manifest]) -> str:
    """Return the revision of a known template, else the next one; empty if the mode has no revisions."""
    if not has_revisions(service):
        return ""
    digest, highest = digest_of(template_key(template)), 0
    for each in deployments:
        revision = str((each["metadata"].get("labels") or {}).get(REVISION) or "")
        if annotation(each, TEMPLATE) == digest:
            return revision
        highest = max(highest, int(revision.rpartition("-")[2] or 0))
    known = ((service.get("status") or {}).get("components") or {}).get(component) or {}
    highest = max(highest, int(str(known.get("latestCreatedRevision") or "-0").rpartition("-")[2]))
    return f"{part_name(service, component)}-{highest + 1:05d}"


def inner_service(service: Manifest, component: str, template: Fields, revision: str = "") -> Manifest:
    labels = template["metadata"]["labels"]
    selected = {REVISION: revision} if revision else {APP: labels[APP]}
    port = {"name": "http", "port": PORT, "targetPort": port_of(template), "protocol": "TCP"}
    spec = {"selector": selected, "ports": [port]}
    return _owned(service, "v1", "Service", part_name(service, component), labels, {}, spec)


def outermost(service: Manifest) -> str:
    """Return the component that receives requests first."""
    return "transformer" if service["spec"].get("transformer") else "predictor"


def is_exposed(service: Manifest) -> bool:
    """odh: only services that request it are reachable from outside."""
    return (service["metadata"].get("labels") or {}).get(VISIBILITY) == "exposed"


def route(service: Manifest) -> Manifest:
    metadata = service["metadata"]
    target = {"kind": "Service", "name": part_name(service, outermost(service)), "weight": 100}
    tls = {"termination": "edge", "insecureEdgeTerminationPolicy": "Redirect"}
    labels = {"inferenceservice-name": metadata["name"]}
    spec = {"to": target, "port": {"targetPort": "http"}, "tls": tls}
    return _owned(service, "route.openshift.io/v1", "Route", metadata["name"], labels, {}, spec)


def ingress(service: Manifest, domain: str) -> Manifest:
    metadata = service["metadata"]
    backend = {"service": {"name": part_name(service, outermost(service)), "port": {"number": PORT}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rule = {"host": host_of(service, domain), "http": {"paths": [path]}}
    spec = {"rules": [rule]}
    return _owned(service, "networking.k8s.io/v1", "Ingress", metadata["name"], {}, {}, spec)


def host_of(service: Manifest, domain: str) -> str:
    return f"{service['metadata']['name']}-{service['metadata']['namespace']}.{domain}"


def _owned(
    service: Manifest, api: str, kind: str, name: str, labels: dict[str, str], annotations: dict[str, str], spec: Fields
) -> Manifest:
    metadata: Fields = {
        "name": name,
        "namespace": service["metadata"]["namespace"],
        "ownerReferences": [reference_to(service)],
    }
    for field, value in (("labels", labels), ("annotations", annotations)):
        if value:
            metadata[field] = value
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}
