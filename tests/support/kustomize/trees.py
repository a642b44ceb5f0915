"""Generates manifests. In: a random source. Out: files by path, as data or as text. Never: touches the disk.

Names, labels and paths come from small pools, so that references resolve, ids collide and patches match; a few do not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import yaml

from support.kustomize.scalars import odd_text

Files = dict[str, Any]
"""A text, or a list of documents that are written as YAML."""

NAMES = ["a", "b", "web", "db"]
SPACES = ["default", "ns1", "ns2"]
IMAGES = ["nginx:1.2", "reg.io/team/app", "reg.io:5000/team/app:v1", "app@sha256:abc", "app:v1@sha256:abc", "nginx"]
KEYS = ["k1", "app", "app.kubernetes.io/name", "team"]
VALUES = ["v1", "v2", "1", "true", "x y", "", "a:b:c", "10.5", "null"]
WORKLOADS = ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "ReplicaSet"]
RBAC = "rbac.authorization.k8s.io/v1"
GVKS = {
    "ConfigMap": "v1", "Secret": "v1", "Service": "v1", "ServiceAccount": "v1", "Namespace": "v1", "Pod": "v1",
    "PersistentVolumeClaim": "v1", "PersistentVolume": "v1", "Deployment": "apps/v1", "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1", "Job": "batch/v1", "CronJob": "batch/v1",
    "Ingress": "networking.k8s.io/v1", "NetworkPolicy": "networking.k8s.io/v1", "PodDisruptionBudget": "policy/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2", "Role": RBAC, "RoleBinding": RBAC, "ClusterRole": RBAC,
    "ClusterRoleBinding": RBAC, "CustomResourceDefinition": "apiextensions.k8s.io/v1",
    "StorageClass": "storage.k8s.io/v1", "InferenceService": "serving.kserve.io/v1beta1",
    "Application": "argoproj.io/v1alpha1", "APIService": "apiregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration": "admissionregistration.k8s.io/v1", "Certificate": "cert-manager.io/v1",
    "PriorityClass": "scheduling.k8s.io/v1", "ServiceMonitor": "monitoring.coreos.com/v1",
}  # fmt: skip
COMMON = ["ConfigMap", "Secret", "Deployment", "Deployment", "Service", "ServiceAccount", "StatefulSet", "CronJob"]


class Manifests:
    """Generates manifests of many kinds that reference each other."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.pick = rng.choice

    def chance(self, of: float) -> bool:
        return self.rng.random() < of

    def some(self, pool: list[Any], most: int = 3) -> list[Any]:
        return self.rng.sample(pool, self.rng.randint(0, min(most, len(pool))))

    def pairs(self, most: int = 2) -> dict[str, str]:
        return {key: self.pick(VALUES) for key in self.some(KEYS, most)}

    def kind(self) -> str:
        return self.pick(COMMON) if self.chance(0.6) else self.pick(list(GVKS))

    def manifest(self, kind: str = "", name: str = "") -> dict[str, Any]:
        kind = kind or self.kind()
        metadata: dict[str, Any] = {"name": name or self.pick(NAMES)}
        if self.chance(0.2):
            metadata["namespace"] = self.pick(SPACES)
        for field in ("labels", "annotations"):
            if self.chance(0.3):
                metadata[field] = self.pairs()
        if self.chance(0.02):
            metadata["annotations"] = {"config.kubernetes.io/local-config": self.pick(["true", "false"])}
        manifest = {"apiVersion": GVKS[kind], "kind": kind, "metadata": metadata}
        fill: Callable[[], dict[str, Any]] | None = getattr(self, f"_{kind.lower()}", None)
        if fill and not self.chance(0.05):
            manifest.update(fill())
        elif kind in WORKLOADS:
            manifest["spec"] = self._workload(kind)
        return manifest

    def _configmap(self) -> dict[str, Any]:
        return {"data": {key: self.pick(VALUES) for key in self.some(["x", "y", "z.conf", "a/b"])}}

    def _secret(self) -> dict[str, Any]:
        return {"type": "Opaque", self.pick(["data", "stringData"]): {"x": "YQ=="}}

    def container(self, name: str) -> dict[str, Any]:
        container: dict[str, Any] = {"name": name, "image": self.pick(IMAGES)}
        if self.chance(0.6):
            container["env"] = [self.env(item) for item in self.some(["A", "B", "C"])]
        if self.chance(0.5):
            container["ports"] = [self.port("containerPort", item) for item in self.some([80, 81, 8080])]
        if self.chance(0.4):
            container["volumeMounts"] = [{"name": "v", "mountPath": item} for item in self.some(["/a", "/b"])]
        if self.chance(0.3):
            container["args"] = self.pick([["--x=$(V1)", "$(V2)"], ["a", "b"], [], ["$$(V1)", "$(UNKNOWN)"]])
        if self.chance(0.3):
            container["envFrom"] = [{self.pick(["configMapRef", "secretRef"]): {"name": self.pick(NAMES)}}]
        if self.chance(0.2):
            container["resources"] = {"limits": {"cpu": self.pick([1, "100m", 1.5, "1"]), "memory": "1Gi"}}
        return container

    def env(self, name: str) -> dict[str, Any]:
        if self.chance(0.4):
            part = self.pick(["configMapKeyRef", "secretKeyRef"])
            return {"name": name, "valueFrom": {part: {"name": self.pick(NAMES), "key": "x"}}}
        return {"name": name, "value": self.pick([*VALUES, "$(V1)", "p-$(V1)-$(V2)"])}

    def port(self, key: str, number: int) -> dict[str, Any]:
        entry: dict[str, Any] = {key: number}
        if self.chance(0.5):
            entry["protocol"] = self.pick(["TCP", "UDP"])
        if self.chance(0.4):
            entry["name"] = self.pick(["http", "metrics"])
        return entry

    def pod(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"containers": [self.container(item) for item in self.some(["c", "d", "side"])]}
        if self.chance(0.2):
            spec["initContainers"] = [self.container("init")]
        if self.chance(0.5):
            spec["volumes"] = [self.volume(item) for item in self.some(["v", "w"])]
        if self.chance(0.4):
            spec["serviceAccountName"] = self.pick(NAMES)
        if self.chance(0.2):
            spec["imagePullSecrets"] = [{"name": item} for item in self.some(NAMES)]
        if self.chance(0.1):
            spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
        if self.chance(0.1):
            spread = {"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1}
            spec["topologySpreadConstraints"] = [{**spread, "labelSelector": {"matchLabels": self.pairs()}}]
        return spec

    def volume(self, name: str) -> dict[str, Any]:
        source: dict[str, Any] = self.pick([
            {"configMap": {"name": self.pick(NAMES)}}, {"secret": {"secretName": self.pick(NAMES)}}, {"emptyDir": {}},
            {"persistentVolumeClaim": {"claimName": self.pick(NAMES)}},
            {"projected": {"sources": [{"configMap": {"name": self.pick(NAMES)}}, {"secret": {"name": "b"}}]}},
        ])  # fmt: skip
        return {"name": name, **source}

    def template(self) -> dict[str, Any]:
        template: dict[str, Any] = {"spec": self.pod()}
        if self.chance(0.7):
            template["metadata"] = {"labels": self.pairs()} if self.chance(0.8) else {"annotations": self.pairs()}
        return template

    def _workload(self, kind: str) -> dict[str, Any]:
        if kind == "Pod":
            return self.pod()
        if kind == "CronJob":
            return {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": self.template()}}}
        spec: dict[str, Any] = {"template": self.template()}
        if self.chance(0.6) and kind != "Job":
            spec["selector"] = {"matchLabels": self.pairs()}
        if self.chance(0.5) and kind not in ("DaemonSet", "Job"):
            spec["replicas"] = self.rng.randint(0, 3)
        if kind == "StatefulSet":
            spec["serviceName"] = self.pick(NAMES)
            if self.chance(0.5):
                spec["volumeClaimTemplates"] = [{"metadata": {"name": "v"}, "spec": {"storageClassName": "a"}}]
        return spec

    def _service(self) -> dict[str, Any]:
        ports = [self.port("port", number) for number in self.some([80, 81, 443])]
        return {"spec": {"ports": ports, "selector": self.pairs(), "type": self.pick(["ClusterIP", "NodePort"])}}

    def _serviceaccount(self) -> dict[str, Any]:
        return {self.pick(["secrets", "imagePullSecrets"]): [{"name": self.pick(NAMES)}]}

    def _ingress(self) -> dict[str, Any]:
        backend = {"service": {"name": self.pick(NAMES), "port": {"number": 80}}}
        rule = {"host": "$(V1).io", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        return {"spec": {"rules": [rule], "tls": [{"secretName": self.pick(NAMES), "hosts": ["h"]}]}}

    def _networkpolicy(self) -> dict[str, Any]:
        peer = {self.pick(["podSelector", "namespaceSelector"]): {"matchLabels": self.pairs()}}
        return {"spec": {"podSelector": {"matchLabels": self.pairs()}, "ingress": [{"from": [peer]}]}}

    def _poddisruptionbudget(self) -> dict[str, Any]:
        return {"spec": {"minAvailable": 1, "selector": {"matchLabels": self.pairs()}}}

    def _horizontalpodautoscaler(self) -> dict[str, Any]:
        kind = self.pick(["Deployment", "StatefulSet", "Rollout"])
        return {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": self.pick(NAMES)}}}

    def _role(self) -> dict[str, Any]:
        rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": self.some(NAMES), "verbs": ["get"]}
        return {"rules": [rule]}

    _clusterrole = _role

    def _rolebinding(self) -> dict[str, Any]:
        kind = self.pick(["Role", "ClusterRole"])
        return {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.pick(NAMES)},
            "subjects": [self.subject() for _ in range(self.rng.randint(0, 2))],
        }

    _clusterrolebinding = _rolebinding

    def subject(self) -> dict[str, Any]:
        entry = {
            "kind": self.pick(["ServiceAccount", "ServiceAccount", "User"]),
            "name": self.pick([*NAMES, "default"]),
        }
        if self.chance(0.5):
            entry["namespace"] = self.pick(SPACES)
        return entry

    def _customresourcedefinition(self) -> dict[str, Any]:
        service = {"name": self.pick(NAMES), "namespace": self.pick(SPACES)}
        hook = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": service}}}
        return {"spec": {"group": "x.io", "names": {"kind": "X"}, "conversion": hook}}

    def _inferenceservice(self) -> dict[str, Any]:
        return {"spec": {"predictor": {"serviceAccountName": self.pick(NAMES), "containers": [self.container("c")]}}}

    def _application(self) -> dict[str, Any]:
        return {"spec": {"source": {"repoURL": "https://h/r", "path": "a/b"}, "destination": {"namespace": "ns1"}}}

    def _apiservice(self) -> dict[str, Any]:
        return {"spec": {"service": {"name": self.pick(NAMES), "namespace": self.pick(SPACES)}}}

    def _validatingwebhookconfiguration(self) -> dict[str, Any]:
        service: dict[str, Any] = {"name": self.pick(NAMES)}
        if self.chance(0.7):
            service["namespace"] = self.pick(SPACES)
        return {"webhooks": [{"name": self.pick(["h.io", "i.io"]), "clientConfig": {"service": service}}]}

    def _persistentvolumeclaim(self) -> dict[str, Any]:
        return {"spec": {"volumeName": self.pick(NAMES), "storageClassName": self.pick(NAMES)}}

    def _servicemonitor(self) -> dict[str, Any]:
        return {"spec": {"selector": {"matchLabels": self.pairs()}, "endpoints": [{"port": "http"}]}}

    def documents(self, most: int = 4) -> list[Any]:
        documents: list[Any] = [self.manifest() for _ in range(self.rng.randint(1, most))]
        if self.chance(0.08):
            items = [self.manifest() for _ in range(self.rng.randint(0, 2))]
            documents.append({"apiVersion": "v1", "kind": "List", "items": items})
        if self.chance(0.02):
            documents.append(
                self.pick([None, None, {}, {"kind": "ConfigMap"}, [], {"apiVersion": "v1", "metadata": {}}])
            )
        return documents


def written(documents: Any, rng: random.Random) -> str:
    """Write documents as text: block YAML, flow YAML or JSON."""
    if isinstance(documents, str):
        return documents
    if len(documents) == 1 and rng.random() < 0.1:
        return json.dumps(documents[0])
    flow = rng.random() < 0.1 or None
    return "---\n".join(yaml.safe_dump(document, sort_keys=False, default_flow_style=flow) for document in documents)


def odd_manifest(rng: random.Random) -> str:
    """Generate a manifest that uses unusual YAML."""
    return odd_text(rng, rng.choice(NAMES))
