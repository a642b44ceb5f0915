"""Desired manifests of a setup.

In: a delivery file and an Argo CD installation. Out: manifests. Never: reads live state.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from argosy.gitops.application.cluster_address import parse_cluster_address
from argosy.gitops.coexistence.argocd_settings import APPLICATION, Installation
from argosy.gitops.delivery_file.values import Delivery, Environment, Sync
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

NAMESPACE: Final = GroupKind("", "Namespace")
SECRET: Final = GroupKind("", "Secret")
ROLE_BINDING: Final = GroupKind("rbac.authorization.k8s.io", "RoleBinding")

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MARK: Final = "argosy-setup"  # label value of objects that setup created, so that it removes only these
DASHBOARD: Final = {"opendatahub.io/dashboard": "true"}
DISPLAY_NAME: Final = "openshift.io/display-name"
BINDING: Final = "argocd-admin"
FOR_REPOSITORY: Final = {"argocd.argoproj.io/secret-type": "repository"}
IN_CLUSTER: Final = "https://kubernetes.default.svc"


def is_ours(live: Manifest) -> bool:
    return (live["metadata"].get("labels") or {}).get(MANAGED_BY) == MARK


def destination(application: Manifest) -> str:
    """Return the destination namespace of an Application; empty if it is in another cluster."""
    place = (application.get("spec") or {}).get("destination") or {}
    server = parse_cluster_address(str(place.get("server") or ""))
    is_here = server == IN_CLUSTER or place.get("name") == "in-cluster"
    return str(place.get("namespace") or "") if is_here else ""


def account(installation: Installation) -> str:
    """Return the service account of the application controller."""
    # argo: the operator prefixes the instance name
    prefix = f"{installation.name}-" if installation.is_operated else ""
    return f"{prefix}argocd-application-controller"


def namespace(name: str) -> Manifest:
    labels = {**DASHBOARD, MANAGED_BY: MARK}
    metadata = {"name": name, "labels": labels, "annotations": {DISPLAY_NAME: name}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def subject(installation: Installation) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": account(installation), "namespace": installation.namespace}


def role_binding(place: str, installation: Installation) -> Manifest:
    """Build the binding that makes Argo CD an admin of the namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": BINDING, "namespace": place, "labels": {MANAGED_BY: MARK}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [subject(installation)],
    }


def application(delivery: Delivery, environment: Environment, installation: Installation) -> Manifest:
    labels = {"app": environment.product, "environment": environment.name, MANAGED_BY: MARK}
    metadata = {"name": environment.application, "namespace": installation.namespace, "labels": labels}
    source = {
        "repoURL": delivery.repository.url,
        "targetRevision": delivery.repository.ref,
        "path": environment.path,
    }
    spec = {
        "project": "default",
        "source": source,
        "destination": {"server": IN_CLUSTER, "namespace": environment.namespace},
        "syncPolicy": _sync_policy(environment),
        # argo: InferenceService has no status subresource in old clusters, so its status would show as a diff
        "ignoreDifferences": [{"group": "serving.kserve.io", "kind": "InferenceService", "jsonPointers": ["/status"]}],
    }
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}


def _sync_policy(environment: Environment) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "syncOptions": ["CreateNamespace=true", "PruneLast=true"],
        "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}},
    }
    if environment.sync is Sync.AUTO:
        policy["automated"] = {"prune": True, "selfHeal": True, "allowEmpty": False}
    return policy


def repository_key(delivery: Delivery, installation: Installation) -> ResourceKey:
    return ResourceKey(*SECRET, installation.namespace, f"{delivery.product}-repository")


def repository_secret(key: ResourceKey, values: Mapping[str, str]) -> Manifest:
    """Build the repository Secret. argo: Argo CD ignores a Secret without type and url."""
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {**FOR_REPOSITORY, MANAGED_BY: MARK},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": encoded(values)}


def encoded(values: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}


def decoded(secret: Manifest) -> dict[str, str]:
    data = secret.get("data") or {}
    return {name: base64.b64decode(value).decode(errors="replace") for name, value in data.items()}
