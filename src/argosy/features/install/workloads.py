"""Workloads of an installation: Deployments, Services, NetworkPolicies and PodDisruptionBudgets.

In: options. Out: manifests that satisfy the restricted Pod security level under any user id. Never: sets a user id;
uses a writable root filesystem; runs a program other than argosy.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.install.options import InstallOptions
from argosy.gitops.application.argosy_component_labels import (
    CONTROLLER_NAME,
    SERVER_NAME,
    build_labels,
    build_selector,
)
from argosy.isolation.confinement_requirement import REQUIRED, VARIABLE
from argosy.kube.objects import Manifest

# Sharding also for one replica: it hands over to the next version, and replicas can be added at any time.
SHARDING_FLAGS: Final = ("--shards", "auto")
HA_CONTROLLER_REPLICAS, HA_SERVER_REPLICAS = 3, 2  # replicas with --ha
METRICS_PORTS: Final = {CONTROLLER_NAME: 8082, SERVER_NAME: 8083}  # argo: the same ports
PAGE_PORT: Final = 8484
HOME_FOLDER: Final = "/tmp"  # noqa: S108 - an emptyDir of the Pod's own
TLS_FOLDER: Final = "/tls"
RESTRICTED_SECURITY_CONTEXT: Final = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def build_workloads(options: InstallOptions) -> list[Manifest]:
    parts = [SERVER_NAME] if options.is_read_only else [CONTROLLER_NAME, SERVER_NAME]
    networking = [
        build(part, options)
        for build in (build_service, build_network_policy, build_disruption_budget)
        for part in parts
    ]
    return [*networking, *(build_deployment(part, options) for part in parts)]


def build_service(part: str, options: InstallOptions) -> Manifest:
    ports = [{"name": "metrics", "port": METRICS_PORTS[part], "targetPort": "metrics"}]
    if part == SERVER_NAME:
        ports.insert(0, {"name": "https", "port": 443, "targetPort": "https"})
    spec = {"selector": build_selector(part), "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _build_metadata(part, options), "spec": spec}


def build_network_policy(part: str, options: InstallOptions) -> Manifest:
    """Restrict ingress only, because Git hosts, registries and clusters can be anywhere."""
    rules: list[Manifest] = [{"from": [{"namespaceSelector": {}}], "ports": [{"port": "metrics", "protocol": "TCP"}]}]
    if part == SERVER_NAME:
        rules.insert(0, {"ports": [{"port": "https", "protocol": "TCP"}]})
    spec = {"podSelector": {"matchLabels": build_selector(part)}, "policyTypes": ["Ingress"], "ingress": rules}
    api = "networking.k8s.io/v1"
    return {"apiVersion": api, "kind": "NetworkPolicy", "metadata": _build_metadata(part, options), "spec": spec}


def build_disruption_budget(part: str, options: InstallOptions) -> Manifest:
    """Allow one unavailable Pod, also for a single replica, so that nodes can be drained."""
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": build_selector(part)}}
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    return {**kind, "metadata": _build_metadata(part, options), "spec": spec}


def build_deployment(part: str, options: InstallOptions) -> Manifest:
    replicas = (HA_CONTROLLER_REPLICAS if part == CONTROLLER_NAME else HA_SERVER_REPLICAS) if options.is_ha else 1
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": build_selector(part)},
        # A new Pod is ready before an old one stops.
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        "template": {"metadata": {"labels": build_labels(part)}, "spec": _build_pod_spec(part, options)},
    }
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": _build_metadata(part, options), "spec": spec}


def _build_pod_spec(part: str, options: InstallOptions) -> dict[str, Any]:
    volumes: list[dict[str, Any]] = [{"name": "home", "emptyDir": {}}]
    if part == SERVER_NAME and options.tls_secret:
        volumes.append({"name": "tls", "secret": {"secretName": options.tls_secret}})
    return {
        "serviceAccountName": part,
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        **({"affinity": _build_anti_affinity(part)} if options.is_ha else {}),
        "containers": [_build_container(part, options)],
        "volumes": volumes,
    }


def _build_anti_affinity(part: str) -> dict[str, Any]:
    """Prefer different nodes; a cluster with one node still works."""
    term = {"labelSelector": {"matchLabels": build_selector(part)}, "topologyKey": "kubernetes.io/hostname"}
    preference = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def _build_container(part: str, options: InstallOptions) -> dict[str, Any]:
    mounts: list[dict[str, Any]] = [{"name": "home", "mountPath": HOME_FOLDER}]
    if part == SERVER_NAME and options.tls_secret:
        mounts.append({"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True})
    ports = [{"name": "metrics", "containerPort": METRICS_PORTS[part]}]
    if part == SERVER_NAME:
        ports.insert(0, {"name": "https", "containerPort": PAGE_PORT})
    return {
        "name": part.removeprefix("argosy-"),
        "image": options.image,
        "command": [
            "argosy",
            *(_build_controller_command(options) if part == CONTROLLER_NAME else _build_server_command(options)),
        ],
        # The default in a Pod, listed here so that clusters without confinement support can change it.
        "env": [{"name": "HOME", "value": HOME_FOLDER}, {"name": VARIABLE, "value": REQUIRED}],
        "ports": ports,
        # It becomes ready after the initial list of the cluster.
        "startupProbe": _build_probe("/readyz", periodSeconds=2, failureThreshold=300),
        # An unreachable API server must not cause a restart.
        "livenessProbe": _build_probe("/livez", periodSeconds=10, timeoutSeconds=5, failureThreshold=12),
        "readinessProbe": _build_probe("/readyz", periodSeconds=5),
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "6Gi"}},
        "securityContext": RESTRICTED_SECURITY_CONTEXT,
        "volumeMounts": mounts,
    }


def _build_probe(path: str, **timing: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "metrics"}, **timing}


def _build_controller_command(options: InstallOptions) -> list[str]:
    metrics_flags = ["--listen", "::", "--port", str(METRICS_PORTS[CONTROLLER_NAME])]
    return ["controller", "--namespace", options.namespace, *metrics_flags, *SHARDING_FLAGS]


def _build_server_command(options: InstallOptions) -> list[str]:
    service_host = f"{SERVER_NAME}.{options.namespace}"
    names = [*options.hostnames, SERVER_NAME, service_host, f"{service_host}.svc", f"{service_host}.svc.cluster.local"]
    tls_flags = (
        ["--tls-cert", f"{TLS_FOLDER}/tls.crt", "--tls-key", f"{TLS_FOLDER}/tls.key"] if options.tls_secret else []
    )
    listen_flags = ["--listen", "::", "--port", str(PAGE_PORT), "--metrics-port", str(METRICS_PORTS[SERVER_NAME])]
    hostname_flags = [word for name in names for word in ("--hostname", name)]
    return ["serve", "--namespace", options.namespace, "--no-browser", *listen_flags, *tls_flags, *hostname_flags]


def _build_metadata(part: str, options: InstallOptions) -> dict[str, Any]:
    return {"name": part, "namespace": options.namespace, "labels": build_labels(part)}
