"""Creates the objects that every cluster has: system namespaces, its Service, priority classes, RBAC roles."""

from __future__ import annotations

from typing import Any

from argosy.errors import Conflict
from argosy.kube.names import GroupKind, split_api_version
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.controllers.controller import CONTROLLER
from argosy.sandbox.apiserver.registry import Registry

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
RBAC = "rbac.authorization.k8s.io/v1"
READ, WRITE = ["get", "list", "watch"], ["create", "delete", "deletecollection", "patch", "update"]
BOOTSTRAP = {"kubernetes.io/bootstrapping": "rbac-defaults"}
# k8s: resources of the roles `view`, `edit` and `admin`; Secrets and Roles are added separately
VIEWABLE = {
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
NOT_EDITABLE = {
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


async def furnish(registry: Registry) -> None:
    """Create missing objects. Runs at every start."""
    for manifest in wanted():
        group, version = split_api_version(manifest["apiVersion"])
        served = registry.catalog.of_kind(GroupKind(group, manifest["kind"]), version)
        assert served is not None, manifest["kind"]
        metadata = manifest["metadata"]
        namespace = metadata.get("namespace", "")
        if registry.store.latest(served.bucket, namespace, metadata["name"]) is None:
            try:
                await registry.create(served, namespace, manifest, CONTROLLER)
            except Conflict:
                pass


def wanted() -> list[Manifest]:
    namespaces = [_named("v1", "Namespace", name) for name in NAMESPACES]
    return [*namespaces, _own_service(), *_priorities(), *_roles(), *_role_bindings()]


def _named(api_version: str, kind: str, name: str, **metadata: Any) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}}


def _own_service() -> Manifest:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]
    spec = {"clusterIP": "10.96.0.1", "ports": ports}
    return {**_named("v1", "Service", "kubernetes", namespace="default", labels=labels), "spec": spec}


def _priorities() -> list[Manifest]:
    rows = [("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)]
    return [{**_named("scheduling.k8s.io/v1", "PriorityClass", name), "value": value} for name, value in rows]


def _rules(verbs: list[str], *, without: frozenset[str] | set[str] = frozenset()) -> list[Manifest]:
    rules = []
    for group, plurals in VIEWABLE.items():
        resources = [each for each in plurals.split() if each not in without]
        if resources:
            rules.append({"apiGroups": [group], "resources": resources, "verbs": verbs})
    return rules


def _role(name: str, rules: list[Manifest], **labels: str) -> Manifest:
    metadata = _named(RBAC, "ClusterRole", name, labels={**BOOTSTRAP, **labels})
    return {**metadata, "rules": rules}


def _aggregate(name: str, *parts: str) -> Manifest:
    key = "rbac.authorization.k8s.io/aggregate-to-"
    gathers = [{"matchLabels": {f"{key}{part}": "true"}} for part in parts]
    return {**_named(RBAC, "ClusterRole", name, labels=BOOTSTRAP), "aggregationRule": {"clusterRoleSelectors": gathers}}


def _roles() -> list[Manifest]:
    key = "rbac.authorization.k8s.io/aggregate-to-"
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": READ + WRITE}
    acting = {"apiGroups": [""], "resources": ["pods/eviction", "serviceaccounts/token"], "verbs": ["create"]}
    entering = ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy"]
    inside = {"apiGroups": [""], "resources": entering, "verbs": READ + WRITE}
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": READ + WRITE}
    as_account = {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]}
    roles = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": READ + WRITE}
    reviews = {
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        "verbs": ["create"],
    }
    myself = {"apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"], "verbs": ["create"]}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    edit = [*_rules(WRITE, without=NOT_EDITABLE), secrets, acting, inside, leases, as_account]
    return [
        _role("cluster-admin", [everything, {"nonResourceURLs": ["*"], "verbs": ["*"]}]),
        _aggregate("admin", "admin", "edit", "view"),
        _aggregate("edit", "edit", "view"),
        _aggregate("view", "view"),
        _role("system:aggregate-to-admin", [roles], **{f"{key}admin": "true"}),
        _role("system:aggregate-to-edit", edit, **{f"{key}edit": "true"}),
        _role("system:aggregate-to-view", _rules(READ), **{f"{key}view": "true"}),
        _role("system:basic-user", [reviews, myself]),
        _role("system:discovery", [{"nonResourceURLs": DISCOVERY_URLS, "verbs": ["get"]}]),
        _role("system:public-info-viewer", [{"nonResourceURLs": OPEN_URLS, "verbs": ["get"]}]),
    ]


def _role_bindings() -> list[Manifest]:
    rows = [
        ("cluster-admin", "system:masters"),
        ("system:basic-user", "system:authenticated"),
        ("system:discovery", "system:authenticated"),
        ("system:public-info-viewer", "system:authenticated"),
    ]
    return [
        {
            **_named(RBAC, "ClusterRoleBinding", name, labels=BOOTSTRAP),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": group}],
        }
        for name, group in rows
    ]
