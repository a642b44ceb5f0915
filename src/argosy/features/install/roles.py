"""RBAC of an installation: ServiceAccounts, roles and bindings with minimal permissions.

In: options. Out: ServiceAccounts, roles and bindings. Never: grants an unused permission; the proofs remove each rule
in turn, and an operation must fail.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.install.options import InstallOptions
from argosy.gitops.application.argosy_component_labels import CONTROLLER_NAME, SERVER_NAME, build_labels
from argosy.kube.objects import Manifest

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
SERVER_READ_ROLE, SERVER_WRITE_ROLE = f"{SERVER_NAME}-looks", f"{SERVER_NAME}-acts"
# Login data of a server: created in advance for a read-only server, which may not create objects.
LOGIN_SECRETS: Final = ("argocd-secret", "argocd-initial-admin-secret")
LOGIN_CONFIG_MAPS: Final = ("argosy-login-attempts", "argosy-sessions")
READ_VERBS: Final = ["get", "list", "watch"]
InstallRbacRule = dict[str, Any]

# Git may contain any kind, including roles, so the controller needs bind and escalate.
CONTROLLER_RULES: Final[list[InstallRbacRule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": [*READ_VERBS, "create", "update", "patch", "delete"]},
    {"apiGroups": [RBAC_GROUP], "resources": ["clusterroles", "roles"], "verbs": ["bind", "escalate"]},
]
# Read access to all live objects, for trees and diffs. The web middleware masks Secret values.
SERVER_READ_RULES: Final[list[InstallRbacRule]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": READ_VERBS}]
# Deletes, patches and actions on objects of the tree, including Applications and projects.
SERVER_WRITE_RULES: Final[list[InstallRbacRule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["delete", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
]
# In the namespace of the settings.
SERVER_NAMESPACE_RULES: Final[list[InstallRbacRule]] = [
    {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["create"]},
    {"apiGroups": ["argoproj.io"], "resources": ["applicationsets", "appprojects"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
# A read-only server still writes login data: signing key, password, failed attempts, ended sessions.
LOGIN_RULES: Final[list[InstallRbacRule]] = [
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": list(LOGIN_SECRETS), "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": list(LOGIN_CONFIG_MAPS), "verbs": ["patch"]},
]


def build_rbac(options: InstallOptions) -> list[Manifest]:
    rbac_manifests = [] if options.is_read_only else [
        _build_account(CONTROLLER_NAME, options),
        _build_role(CONTROLLER_NAME, CONTROLLER_NAME, CONTROLLER_RULES),
        _build_binding(CONTROLLER_NAME, CONTROLLER_NAME, options),
    ]  # fmt: skip
    rbac_manifests += [
        _build_account(SERVER_NAME, options),
        _build_role(SERVER_READ_ROLE, SERVER_NAME, SERVER_READ_RULES),
        _build_binding(SERVER_READ_ROLE, SERVER_NAME, options),
    ]
    if not options.is_read_only:
        rbac_manifests += [
            _build_role(SERVER_WRITE_ROLE, SERVER_NAME, SERVER_WRITE_RULES),
            _build_binding(SERVER_WRITE_ROLE, SERVER_NAME, options),
        ]
    rules = LOGIN_RULES if options.is_read_only else SERVER_NAMESPACE_RULES
    rbac_manifests += [
        _build_role(SERVER_NAME, SERVER_NAME, rules, options.namespace),
        _build_binding(SERVER_NAME, SERVER_NAME, options, is_local=True),
    ]
    return rbac_manifests


def build_login_objects(options: InstallOptions) -> list[Manifest]:
    """Build the empty Secrets and ConfigMaps that a read-only server fills but may not create."""
    if not options.is_read_only:
        return []
    kinds_and_names = [("Secret", name) for name in LOGIN_SECRETS] + [("ConfigMap", name) for name in LOGIN_CONFIG_MAPS]
    return [
        {"apiVersion": "v1", "kind": kind, "metadata": _build_metadata(name, SERVER_NAME, options.namespace),
         **({"type": "Opaque"} if kind == "Secret" else {})}
        for kind, name in kinds_and_names
    ]  # fmt: skip


def _build_account(name: str, options: InstallOptions) -> Manifest:
    metadata = _build_metadata(name, name, options.namespace)
    # Our Pods mount the token explicitly; other Pods with this account do not get it by default.
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}


def _build_role(name: str, part: str, rules: list[InstallRbacRule], namespace: str = "") -> Manifest:
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": kind,
        "metadata": _build_metadata(name, part, namespace),
        "rules": rules,
    }


def _build_binding(name: str, account: str, options: InstallOptions, *, is_local: bool = False) -> Manifest:
    kind = "Role" if is_local else "ClusterRole"
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _build_metadata(name, account, options.namespace if is_local else ""),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": options.namespace}],
    }


def _build_metadata(name: str, part: str, namespace: str) -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": build_labels(part)}
