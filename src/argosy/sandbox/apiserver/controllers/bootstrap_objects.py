"""Creates the objects that every cluster has: system namespaces, its Service, priority classes, RBAC roles."""

from __future__ import annotations

from typing import Any

from argosy.errors import Conflict
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, split_api_version
from argosy.sandbox.apiserver.controllers.controller import CONTROLLER_CALL
from argosy.sandbox.apiserver.registry import Registry

SYSTEM_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
RBAC_API_VERSION = "rbac.authorization.k8s.io/v1"
READ_VERBS, WRITE_VERBS = ["get", "list", "watch"], ["create", "delete", "deletecollection", "patch", "update"]
BOOTSTRAP_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
# k8s: resources of the roles `view`, `edit` and `admin`; Secrets and Roles are added separately
VIEWABLE_RESOURCES = {
    "": "bindings configmaps endpoints events limitranges namespaces persistentvolumeclaims pods pods/log pods/status "
    "replicationcontrollers replicationcontrollers/scale resourcequotas serviceaccounts services",
    "apps": "controllerrevisions daemonsets deployments deployments/scale replicasets replicasets/scale statefulsets "
    "statefulsets/scale",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "discovery.k8s.io": "endpointslices",
    "networking.k8s.io": "ingresses networkpolicies",
    "policy": "poddisruptionbudgets",
}
NOT_EDITABLE_RESOURCES = {
    *("bindings", "limitranges", "namespaces", "pods/log", "pods/status", "resourcequotas"),
    *("controllerrevisions", "endpoints", "endpointslices"),
}
OPEN_URLS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
DISCOVERY_URLS = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
]


async def create_bootstrap_objects(registry: Registry) -> None:
    """Create missing objects. Runs at every start."""
    for manifest in list_bootstrap_objects():
        group, version = split_api_version(manifest["apiVersion"])
        served = registry.catalog.find_kind(GroupKind(group, manifest["kind"]), version)
        assert served is not None, manifest["kind"]
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        if registry.store.get_latest(served.bucket, namespace, metadata["name"]) is None:
            try:
                await registry.create(served, namespace, manifest, CONTROLLER_CALL)
            except Conflict:
                pass


def list_bootstrap_objects() -> list[Manifest]:
    namespaces = [_build_object("v1", "Namespace", name) for name in SYSTEM_NAMESPACES]
    return [
        *namespaces,
        _build_kubernetes_service(),
        *_build_priority_classes(),
        *_build_cluster_roles(),
        *_build_cluster_role_bindings(),
    ]


def _build_object(api_version: str, kind: str, name: str, **metadata: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}


def _build_kubernetes_service() -> Manifest:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]
    spec = {"clusterIP": "10.96.0.1", "ports": ports}
    return {**_build_object("v1", "Service", "kubernetes", namespace="default", labels=labels), "spec": spec}


def _build_priority_classes() -> list[Manifest]:
    rows = [("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)]
    return [{**_build_object("scheduling.k8s.io/v1", "PriorityClass", name), "value": value} for name, value in rows]


def _build_rules(verbs: list[str], *, without: frozenset[str] | set[str] = frozenset()) -> list[Manifest]:
    rules = []
    for group, plurals in VIEWABLE_RESOURCES.items():
        resources = [plural for plural in plurals.split() if plural not in without]
        if resources:
            rules.append({"apiGroups": [group], "resources": resources, "verbs": verbs})
    return rules


def _build_cluster_role(name: str, rules: list[Manifest], **labels: str) -> Manifest:
    metadata = _build_object(RBAC_API_VERSION, "ClusterRole", name, labels={**BOOTSTRAP_LABELS, **labels})
    return {**metadata, "rules": rules}


def _build_aggregated_role(name: str, *parts: str) -> Manifest:
    key = "rbac.authorization.k8s.io/aggregate-to-"
    selectors = [{"matchLabels": {f"{key}{label}": "true"}} for label in parts]
    return {
        **_build_object(RBAC_API_VERSION, "ClusterRole", name, labels=BOOTSTRAP_LABELS),
        "aggregationRule": {"clusterRoleSelectors": selectors},
    }


def _build_cluster_roles() -> list[Manifest]:
    key = "rbac.authorization.k8s.io/aggregate-to-"
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": READ_VERBS + WRITE_VERBS}
    actions = {"apiGroups": [""], "resources": ["pods/eviction", "serviceaccounts/token"], "verbs": ["create"]}
    connect_resources = ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"]
    connect = {"apiGroups": [""], "resources": connect_resources, "verbs": READ_VERBS + WRITE_VERBS}
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": READ_VERBS + WRITE_VERBS}
    impersonation = {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}
    roles = {
        "apiGroups": ["rbac.authorization.k8s.io"],
        "resources": ["roles", "rolebindings"],
        "verbs": READ_VERBS + WRITE_VERBS,
    }
    reviews = {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    }
    self_review = {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    edit = [
        *_build_rules(WRITE_VERBS, without=NOT_EDITABLE_RESOURCES),
        secrets,
        actions,
        connect,
        leases,
        impersonation,
    ]
    return [
        _build_cluster_role("cluster-admin", [everything, {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _build_aggregated_role("admin", "admin", "edit", "view"),
        _build_aggregated_role("edit", "edit", "view"),
        _build_aggregated_role("view", "view"),
        _build_cluster_role("system:aggregate-to-admin", [roles], **{f"{key}admin": "true"}),
        _build_cluster_role("system:aggregate-to-edit", edit, **{f"{key}edit": "true"}),
        _build_cluster_role("system:aggregate-to-view", _build_rules(READ_VERBS), **{f"{key}view": "true"}),
        _build_cluster_role("system:basic-user", [reviews, self_review]),
        _build_cluster_role("system:discovery", [{"nonResourceURLs": DISCOVERY_URLS, "verbs": ["get"]}]),
        _build_cluster_role("system:public-info-viewer", [{"nonResourceURLs": OPEN_URLS, "verbs": ["get"]}]),
    ]


def _build_cluster_role_bindings() -> list[Manifest]:
    rows = [
        ("cluster-admin", "system:masters"),
        ("system:basic-user", "system:authenticated"),
        ("system:discovery", "system:authenticated"),
        ("system:public-info-viewer", "system:authenticated"),
    ]
    return [
        {
            **_build_object(RBAC_API_VERSION, "ClusterRoleBinding", name, labels=BOOTSTRAP_LABELS),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        }
        for name, group in rows
    ]
