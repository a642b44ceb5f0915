"""Builds the workloads of an Argo CD: Deployments, a StatefulSet, and their simulated Pods.

In: names and labels, or a live workload. Out: manifests. Never: calls a cluster; claims that a program runs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.openshift_gitops.constants import NAME, simulated

IMAGE: Final = "simulated.argosy.invalid"  # reserved domain: no registry can have this name
LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"  # k8s: the alphabet of generated names, without vowels
REVISION: Final = {"Deployment": "pod-template-hash", "StatefulSet": "controller-revision-hash"}
MOST_PODS: Final = 10  # per workload

Env = Mapping[str, str]


def deployment(
    name: str, namespace: str, labels: Mapping[str, str], account: str = "", env: Env | None = None
) -> Manifest:
    strategy = {"strategy": {"type": "RollingUpdate"}}
    spec = {"replicas": 1, "selector": _selector(name), **strategy, "template": _template(name, account, env or {})}
    return simulated("apps/v1", "Deployment", name, namespace, {NAME: name, **labels}, spec=spec)


def stateful_set(
    name: str, namespace: str, labels: Mapping[str, str], account: str = "", env: Env | None = None
) -> Manifest:
    template = _template(name, account, env or {})
    spec = {"replicas": 1, "serviceName": name, "selector": _selector(name), "template": template}
    return simulated("apps/v1", "StatefulSet", name, namespace, {NAME: name, **labels}, spec=spec)


def _selector(name: str) -> Manifest:
    return {"matchLabels": {NAME: name}}


def _template(name: str, account: str, env: Env) -> Manifest:
    container: dict[str, Any] = {"name": name, "image": f"{IMAGE}/{name}"}
    if env:
        container["env"] = [{"name": key, "value": value} for key, value in env.items()]
    spec: dict[str, Any] = {"containers": [container]}
    if account:
        spec["serviceAccountName"] = account
    return {"metadata": {"labels": {NAME: name}}, "spec": spec}


def pods_of(workload: Manifest) -> Sequence[Manifest]:
    """Build one Pod per replica; a changed template changes names or labels, so that new Pods replace the old ones."""
    kind, metadata, spec = workload["kind"], workload["metadata"], workload["spec"]
    revision = revision_of(workload)
    reference = {
        "apiVersion": workload["apiVersion"], "kind": kind, "name": metadata["name"], "uid": metadata["uid"],
        "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip
    made = []
    for number in range(min(spec.get("replicas", 1), MOST_PODS)):
        ending = str(number) if kind == "StatefulSet" else f"{revision}-{_letters(f'{revision}/{number}', 5)}"
        template = spec["template"]
        labels = {**(template["metadata"].get("labels") or {}), REVISION[kind]: revision}
        pod = simulated(
            "v1", "Pod", f"{metadata['name']}-{ending}", metadata["namespace"], labels, spec=template["spec"]
        )
        pod["metadata"]["annotations"].update(template["metadata"].get("annotations") or {})
        pod["metadata"]["ownerReferences"] = [reference]
        made.append(pod)
    return made


def revision_of(workload: Manifest) -> str:
    """Hash the Pod template to ten characters."""
    return _letters(json.dumps(workload["spec"]["template"], sort_keys=True), 10)


def _letters(text: str, count: int) -> str:
    return "".join(LETTERS[byte % len(LETTERS)] for byte in hashlib.sha256(text.encode()).digest()[:count])
