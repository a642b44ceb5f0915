"""What the parts of an installation may do: only what they do.

In: options. Out: ServiceAccounts, Roles and their bindings. Never: a right that nothing needs; the proofs take each of
them away, one after another, and a deed must fail.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.install.options import InstallOptions
from argosy.gitops.application.install_labels import CONTROLLER, SERVER, labels
from argosy.kube.objects import Manifest

GROUP: Final = "rbac.authorization.k8s.io"
LOOKS, ACTS = f"{SERVER}-looks", f"{SERVER}-acts"
# What a server keeps of who signs in: made beforehand where it may not make anything.
SECRETS: Final = ("argocd-secret", "argocd-initial-admin-secret")
CONFIG_MAPS: Final = ("argosy-login-attempts", "argosy-sessions")
LOOK: Final = ["get", "list", "watch"]
Rule = dict[str, Any]

# What Git asks for can be of any kind, and be a role: who may apply anything may hand out anything.
DELIVERS: Final[list[Rule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": [*LOOK, "create", "update", "patch", "delete"]},
    {"apiGroups": [GROUP], "resources": ["clusterroles", "roles"], "verbs": ["bind", "escalate"]},
]
# All that lives, as trees and comparisons show it. Secrets' values are masked at the door, not here.
OBSERVES: Final[list[Rule]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": LOOK}]
# Deletions, patches and actions of objects, from trees; Applications and projects are such objects, too.
ON_OBJECTS: Final[list[Rule]] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["delete", "patch"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create"]},
]
# Where the settings are.
AT_HOME: Final[list[Rule]] = [
    {"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["create"]},
    {"apiGroups": ["argoproj.io"], "resources": ["applicationsets", "appprojects"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["create", "update"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
]
# Who only looks must still know who signs in: a key, a password, guesses, sessions that ended.
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
    """Empty: what a server that must not make any fills."""
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
    # The Pods ask for the token themselves; nobody else who runs as this account gets it unasked.
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
