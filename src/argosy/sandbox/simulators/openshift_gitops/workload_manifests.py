"""Builds the workloads of an Argo CD: Deployments, a StatefulSet, and their simulated Pods.

In: names and labels, or a live workload. Out: manifests. Never: calls a cluster; claims that a program runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import NAME_LABEL, build_simulated

IMAGE_REGISTRY: Final = "simulated.argosy.invalid"  # reserved domain: no registry can have this name
NAME_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # k8s: the alphabet of generated names, without vowels
REVISION_LABELS: Final = {"Deployment": "pod-template-hash", "StatefulSet": "controller-revision-hash"}
MAX_PODS: Final = 10  # per workload

EnvVariables = Mapping[str, str]


def build_deployment(
    name: str, namespace: str, labels: Mapping[str, str], service_account: str = "", env: EnvVariables | None = None
) -> Manifest:
    strategy = {"strategy": {"type": "RollingUpdate"}}
    spec = {
        "replicas": 1,
        "selector": _build_selector(name),
        **strategy,
        "template": _build_template(name, service_account, env or {}),
    }
    return build_simulated("apps/v1", "Deployment", name, namespace, {NAME_LABEL: name, **labels}, spec=spec)


def build_stateful_set(
    name: str, namespace: str, labels: Mapping[str, str], service_account: str = "", env: EnvVariables | None = None
) -> Manifest:
    template = _build_template(name, service_account, env or {})
    spec = {"replicas": 1, "serviceName": name, "selector": _build_selector(name), "template": template}
    return build_simulated("apps/v1", "StatefulSet", name, namespace, {NAME_LABEL: name, **labels}, spec=spec)


def _build_selector(name: str) -> Manifest:
    return {"matchLabels": {NAME_LABEL: name}}


def _build_template(name: str, service_account: str, env: EnvVariables) -> Manifest:
    container: dict[str, Any] = {"name": name, "image": f"{IMAGE_REGISTRY}/{name}"}
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    spec: dict[str, Any] = {"containers": [container]}
    if service_account:
        spec["serviceAccountName"] = service_account
    return {"metadata": {"labels": {NAME_LABEL: name}}, "spec": spec}


def build_pods(workload: Manifest) -> Sequence[Manifest]:
    """Build one Pod per replica; a changed template changes names or labels, so that new Pods replace the old ones."""
    kind, metadata, spec = workload["kind"], workload["metadata"], workload["spec"]
    revision = hash_pod_template(workload)
    reference = {
        "apiVersion": workload["apiVersion"], "kind": kind, "name": metadata["name"], "uid": metadata["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    pods = []
    for number in range(min(spec.get("replicas", 1), MAX_PODS)):
        suffix = (
            str(number) if kind == "StatefulSet" else f"{revision}-{_hash_to_name_suffix(f'{revision}/{number}', 5)}"
        )
        template = spec["template"]
        labels = {**(template["metadata"].get("labels") or {}), REVISION_LABELS[kind]: revision}
        pod = build_simulated(
            "v1", "Pod", f"{metadata['name']}-{suffix}", metadata["namespace"], labels, spec=template["spec"]
        )
        pod["metadata"]["annotations"].update(template["metadata"].get("annotations") or {})
        pod["metadata"]["ownerReferences"] = [reference]
        pods.append(pod)
    return pods


def hash_pod_template(workload: Manifest) -> str:
    """Hash the Pod template to ten characters."""
    return _hash_to_name_suffix(json.dumps(workload["spec"]["template"], sort_keys=True), 10)


def _hash_to_name_suffix(text: str, length: int) -> str:
    return "".join(
        NAME_SUFFIX_ALPHABET[byte % len(NAME_SUFFIX_ALPHABET)]
        for byte in hashlib.sha256(text.encode()).digest()[:length]
    )
