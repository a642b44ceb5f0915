"""RBAC of an installation: ServiceAccounts, roles and bindings with minimal permissions.

In: options. Out: ServiceAccounts, roles and bindings. Never: grants an unused permission; the proofs remove each rule
in turn, and an operation must fail.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.install.options import InstallOptions
from argosy.gitops.application.install_labels import CONTROLLER, SERVER, labels
from argosy.kube.objects import Manifest

GROUP: Final = "rbac.authorization.k8s.io"
LOOKS, ACTS = f"{SERVER}-looks", f"{SERVER}-acts"
# Login data of a server: created in advance for a read-only server, which may not create objects.
SECRETS: Final = ("argocd-secret", "argocd-initial-admin-secret")
CONFIG_MAPS: Final = ("argosy-login-attempts", "argosy-sessions")
LOOK: Final = ["get", "list", "watch"]
Rule = dict[str, Any]

# Git may contain any kind, including roles, so the controller needs bind and escalate.
DELIVERS: Final[list[Rule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": [*LOOK, "create", "update", "patch", "delete"]},
    {"apiGroups": [GROUP], "resources": ["clusterroles", "roles"], "verbs": ["bind", "escalate"]},
]
# Read access to all live objects, for trees and diffs. The web middleware masks Secret values.
OBSERVES: Final[list[Rule]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": LOOK}]
# Deletes, patches and actions on objects of the tree, including Applications and projects.
ON_OBJECTS: Final[list[Rule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["delete", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
]
# In the namespace of the settings.
AT_HOME: Final[list[Rule]] = [
    {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["create"]},
    {"apiGroups": ["argoproj.io"], "resources": ["applicationsets", "appprojects"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
# A read-only server still writes login data: signing key, password, failed attempts, ended sessions.
SIGNING_IN: Final[list[Rule]] = [
    {"apiGroups": [""], "resources": ["secrets"], "resourceNames": list(SECRETS), "verbs": ["patch"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": list(CONFIG_MAPS), "verbs": ["patch"]},
]


def accounts_and_roles(options: InstallOptions) -> list[Manifest]:
    found = [] if options.is_read_only else [
        _account(CONTROLLER, options),
        _role(CONTROLLER, CONTROLLER, DELIVERS),
        _binding(CONTROLLER, CONTROLLER, options),
    ]  # fmt: skip
    found += [_account(SERVER, options), _role(LOOKS, SERVER, OBSERVES), _binding(LOOKS, SERVER, options)]
    if not options.is_read_only:
        found += [_role(ACTS, SERVER, ON_OBJECTS), _binding(ACTS, SERVER, options)]
    rules = SIGNING_IN if options.is_read_only else AT_HOME
    found += [_role(SERVER, SERVER, rules, options.namespace), _binding(SERVER, SERVER, options, is_local=True)]
    return found


def seeds(options: InstallOptions) -> list[Manifest]:
    """Build the empty Secrets and ConfigMaps that a read-only server fills but may not create."""
    if not options.is_read_only:
        return []
    named = [("Secret", name) for name in SECRETS] + [("ConfigMap", name) for name in CONFIG_MAPS]
    return [
        {"apiVersion": "v1", "kind": kind, "metadata": _metadata(name, SERVER, options.namespace),
         **({"type": "Opaque"} if kind == "Secret" else {})}
        for kind, name in named
    ]  # fmt: skip


def _account(name: str, options: InstallOptions) -> Manifest:
    metadata = _metadata(name, name, options.namespace)
    # Our Pods mount the token explicitly; other Pods with this account do not get it by default.
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}


def _role(name: str, part: str, rules: list[Rule], namespace: str = "") -> Manifest:
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": _metadata(name, part, namespace), "rules": rules}


def _binding(name: str, account: str, options: InstallOptions, *, is_local: bool = False) -> Manifest:
    kind = "Role" if is_local else "ClusterRole"
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(name, account, options.namespace if is_local else ""),
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": options.namespace}],
    }


def _metadata(name: str, part: str, namespace: str) -> dict[str, Any]:
    return {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels(part)}
