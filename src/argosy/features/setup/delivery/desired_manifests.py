"""Desired manifests of a setup.

In: a delivery file and an Argo CD installation. Out: manifests. Never: reads live state.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from argosy.annotations import SECRET_TYPE
from argosy.gitops.application.canonical_cluster_address import parse_cluster_address
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.gitops.delivery_file.delivery_value_types import DeliveryEnvironment, DeliveryFile, SyncMode
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, ARGOPROJ_API_VERSION, SECRET

ROLE_BINDING: Final = GroupKind("rbac.authorization.k8s.io", "RoleBinding")

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY_SETUP: Final = "argosy-setup"  # label value of objects that setup created, so that it removes only these
DASHBOARD_LABELS: Final = {"opendatahub.io/dashboard": "true"}
DISPLAY_NAME_ANNOTATION: Final = "openshift.io/display-name"
BINDING_NAME: Final = "argocd-admin"
REPOSITORY_SECRET_LABELS: Final = {SECRET_TYPE: "repository"}
IN_CLUSTER_SERVER: Final = "https://kubernetes.default.svc"


def is_created_by_setup(live: Manifest) -> bool:
    return (live["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGED_BY_SETUP


def read_destination_namespace(application: Manifest) -> str:
    """Return the destination namespace of an Application; empty if it is in another cluster."""
    destination_spec = (application.get("spec") or {}).get("destination") or {}
    server = parse_cluster_address(str(destination_spec.get("server") or ""))
    is_here = server == IN_CLUSTER_SERVER or destination_spec.get("name") == "in-cluster"
    return str(destination_spec.get("namespace") or "") if is_here else ""


def controller_service_account_name(installation: ArgoCDInstallation) -> str:
    """Return the service account of the application controller."""
    # argo: the operator prefixes the instance name
    prefix = f"{installation.name}-" if installation.has_operator else ""
    return f"{prefix}argocd-application-controller"


def build_namespace(name: str) -> Manifest:
    labels = {**DASHBOARD_LABELS, MANAGED_BY: MANAGED_BY_SETUP}
    metadata = {"name": name, "labels": labels, "annotations": {DISPLAY_NAME_ANNOTATION: name}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def build_subject(installation: ArgoCDInstallation) -> dict[str, str]:
    return {
        "kind": "ServiceAccount",
        "name": controller_service_account_name(installation),
        "namespace": installation.namespace,
    }


def build_role_binding(namespace_name: str, installation: ArgoCDInstallation) -> Manifest:
    """Build the binding that makes Argo CD an admin of the namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": BINDING_NAME, "namespace": namespace_name, "labels": {MANAGED_BY: MANAGED_BY_SETUP}},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [build_subject(installation)],
    }


def build_application(
    delivery: DeliveryFile, environment: DeliveryEnvironment, installation: ArgoCDInstallation
) -> Manifest:
    labels = {"app": environment.product, "environment": environment.name, MANAGED_BY: MANAGED_BY_SETUP}
    metadata = {"name": environment.application, "namespace": installation.namespace, "labels": labels}
    source = {
        "repoURL": delivery.repository.url,
        "targetRevision": delivery.repository.ref,
        "path": environment.path,
    }
    spec = {
        "project": "default",
        "source": source,
        "destination": {"server": IN_CLUSTER_SERVER, "namespace": environment.namespace},
        "syncPolicy": _sync_policy(environment),
        # argo: InferenceService has no status subresource in old clusters, so its status would show as a diff
        "ignoreDifferences": [{"group": "serving.kserve.io", "kind": "InferenceService", "jsonPointers": ["/status"]}],
    }
    return {"apiVersion": ARGOPROJ_API_VERSION, "kind": APPLICATION.kind, "metadata": metadata, "spec": spec}


def _sync_policy(environment: DeliveryEnvironment) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "syncOptions": ["CreateNamespace=true", "PruneLast=true"],
        "retry": {"limit": 5, "backoff": {"duration": "5s", "factor": 2, "maxDuration": "3m"}},
    }
    if environment.sync is SyncMode.AUTO:
        policy["automated"] = {"prune": True, "selfHeal": True, "allowEmpty": False}
    return policy


def build_repository_key(delivery: DeliveryFile, installation: ArgoCDInstallation) -> ResourceKey:
    return ResourceKey(*SECRET, installation.namespace, f"{delivery.product}-repository")


def build_repository_secret(key: ResourceKey, values: Mapping[str, str]) -> Manifest:
    """Build the repository Secret. argo: Argo CD ignores a Secret without type and url."""
    metadata = {
        "name": key.name,
        "namespace": key.namespace,
        "labels": {**REPOSITORY_SECRET_LABELS, MANAGED_BY: MANAGED_BY_SETUP},
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "data": encode_secret_data(values),
    }


def encode_secret_data(values: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items()}


def decode_secret_data(secret: Manifest) -> dict[str, str]:
    data = secret.get("data") or {}
    return {name: base64.b64decode(value).decode(errors="replace") for name, value in data.items()}
