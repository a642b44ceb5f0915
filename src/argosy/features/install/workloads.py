"""Workloads of an installation: Deployments, Services, NetworkPolicies and PodDisruptionBudgets.

In: options. Out: manifests that satisfy the restricted Pod security level under any user id. Never: sets a user id;
uses a writable root filesystem; runs a program other than argosy.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.install.options import InstallOptions
from argosy.gitops.application.install_labels import CONTROLLER, SERVER, labels, selector
from argosy.isolation.requirement import REQUIRED, VARIABLE
from argosy.kube.objects import Manifest

# Sharding also for one replica: it hands over to the next version, and replicas can be added at any time.
SHARES: Final = ("--shards", "auto")
CONTROLLERS, SERVERS = 3, 2  # replicas with --ha
METRICS: Final = {CONTROLLER: 8082, SERVER: 8083}  # argo: the same ports
PAGE: Final = 8484
HOME: Final = "/tmp"  # noqa: S108 - an emptyDir of the Pod's own
TLS: Final = "/tls"
LOCKED: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def workloads(options: InstallOptions) -> list[Manifest]:
    parts = [SERVER] if options.is_read_only else [CONTROLLER, SERVER]
    found = [make(part, options) for make in (service, network_policy, budget) for part in parts]
    return [*found, *(deployment(part, options) for part in parts)]


def service(part: str, options: InstallOptions) -> Manifest:
    ports = [{"name": "metrics", "port": METRICS[part], "targetPort": "metrics"}]
    if part == SERVER:
        ports.insert(0, {"name": "https", "port": 443, "targetPort": "https"})
    spec = {"selector": selector(part), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(part, options), "spec": spec}


def network_policy(part: str, options: InstallOptions) -> Manifest:
    """Restrict ingress only, because Git hosts, registries and clusters can be anywhere."""
    rules: list[Manifest] = [{"from": [{"namespaceSelector": {}}], "ports": [{"port": "metrics", "protocol": "TCP"}]}]
    if part == SERVER:
        rules.insert(0, {"ports": [{"port": "https", "protocol": "TCP"}]})
    spec = {"podSelector": {"matchLabels": selector(part)}, "policyTypes": ["Ingress"], "ingress": rules}
    api = "networking.k8s.io/v1"
    return {"apiVersion": api, "kind": "NetworkPolicy", "metadata": _metadata(part, options), "spec": spec}


def budget(part: str, options: InstallOptions) -> Manifest:
    """Allow one unavailable Pod, also for a single replica, so that nodes can be drained."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": selector(part)}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    return {**kind, "metadata": _metadata(part, options), "spec": spec}


def deployment(part: str, options: InstallOptions) -> Manifest:
    replicas = (CONTROLLERS if part == CONTROLLER else SERVERS) if options.is_ha else 1
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": selector(part)},
        # A new Pod is ready before an old one stops.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": labels(part)}, "spec": _pod(part, options)},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _metadata(part, options), "spec": spec}


def _pod(part: str, options: InstallOptions) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "home", "emptyDir": {}}]
    if part == SERVER and options.tls_secret:
        volumes.append({"name": "tls", "secret": {"secretName": options.tls_secret}})
    return {
        "serviceAccountName": part,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"affinity": _apart(part)} if options.is_ha else {}),
        "containers": [_container(part, options)],
        "volumes": volumes,
    }


def _apart(part: str) -> dict[str, Any]:
    """Prefer different nodes; a cluster with one node still works."""
    term = {"labelSelector": {"matchLabels": selector(part)}, "topologyKey": "kubernetes.io/hostname"}
    wish = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def _container(part: str, options: InstallOptions) -> dict[str, Any]:
    mounts: list[dict[str, Any]] = [{"name": "home", "mountPath": HOME}]
    if part == SERVER and options.tls_secret:
        mounts.append({"name": "tls", "mountPath": TLS, "readOnly": True})
    ports = [{"name": "metrics", "containerPort": METRICS[part]}]
    if part == SERVER:
        ports.insert(0, {"name": "https", "containerPort": PAGE})
    return {
        "name": part.removeprefix("argosy-"),
        "image": options.image,
        "command": ["argosy", *(_controls(options) if part == CONTROLLER else _serves(options))],
        # The default in a Pod, listed here so that clusters without confinement support can change it.
        "env": [{"name": "HOME", "value": HOME}, {"name": VARIABLE, "value": REQUIRED}],
        "ports": ports,
        # It becomes ready after the initial list of the cluster.
        "startupProbe": _asked("/readyz", periodSeconds=2, failureThreshold=300),
        # An unreachable API server must not cause a restart.
        "livenessProbe": _asked("/livez", periodSeconds=10, timeoutSeconds=5, failureThreshold=12),
        "readinessProbe": _asked("/readyz", periodSeconds=5),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "6Gi"}},
        "securityContext": LOCKED,
        "volumeMounts": mounts,
    }


def _asked(path: str, **times: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "metrics"}, **times}


def _controls(options: InstallOptions) -> list[str]:
    probed = ["--listen", "::", "--port", str(METRICS[CONTROLLER])]
    return ["controller", "--namespace", options.namespace, *probed, *SHARES]


def _serves(options: InstallOptions) -> list[str]:
    where = f"{SERVER}.{options.namespace}"
    names = [*options.hostnames, SERVER, where, f"{where}.svc", f"{where}.svc.cluster.local"]
    files = ["--tls-cert", f"{TLS}/tls.crt", "--tls-key", f"{TLS}/tls.key"] if options.tls_secret else []
    listening = ["--listen", "::", "--port", str(PAGE), "--metrics-port", str(METRICS[SERVER])]
    hosts = [word for name in names for word in ("--hostname", name)]
    return ["serve", "--namespace", options.namespace, "--no-browser", *listening, *files, *hosts]


def _metadata(part: str, options: InstallOptions) -> dict[str, Any]:
    return {"name": part, "namespace": options.namespace, "labels": labels(part)}
