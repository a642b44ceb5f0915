"""Export of health checks as files for Git.

In: checks, a namespace and a name. Out: YAML of an ArgoCD resource, of argocd-cm, or of an Ansible vars file.
Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.features.health_checks.argocd_install.merge import Check
from argosy.features.health_checks.argocd_install.settings_location import FIELD
from argosy.gitops.coexistence.argocd_settings import PLAIN_NAMESPACE, SETTINGS, USUAL
from argosy.kube.objects import dump

FORMS: Final = ("cr", "configmap", "ansible")
VARIABLE: Final = "validated_patterns_argocd_health_checks"


def exported(form: str, checks: Sequence[Check], *, namespace: str = "", name: str = "") -> str:
    match form:
        case "cr":
            return _resource(checks, namespace or USUAL, name or USUAL)
        case "configmap":
            return _config_map(checks, namespace or PLAIN_NAMESPACE)
    return _variables(checks)


def _resource(checks: Sequence[Check], namespace: str, name: str) -> str:
    head = [
        "Health checks for an Argo CD that an operator runs, such as OpenShift GitOps:",
        *_names(checks),
        "",
        f"To add them by hand, paste the fields below `spec:` into `kubectl edit argocd {name} -n {namespace}`.",
        f"CAREFUL: `kubectl apply` of this file replaces the whole {FIELD} list of that resource,",
        "including health checks that others added. `argosy health apply` merges the list and keeps them.",
    ]
    manifest = {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {FIELD: [check.entry for check in checks]},
    }
    return _comment(head) + dump(manifest)


def _config_map(checks: Sequence[Check], namespace: str) -> str:
    head = [
        "Health checks for an Argo CD that no operator runs:",
        *_names(checks),
        "",
        f"`kubectl apply` of this file adds these keys to {SETTINGS} and keeps the others.",
        "If an ArgoCD resource owns that ConfigMap, its operator removes the keys again: use the resource instead.",
    ]
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": SETTINGS,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": SETTINGS, "app.kubernetes.io/part-of": "argocd"},
        },
        "data": {check.key: check.script for check in checks},
    }
    return _comment(head) + dump(manifest)


def _variables(checks: Sequence[Check]) -> str:
    head = ["Health checks for the role validated_patterns_deploy:", *_names(checks)]
    return _comment(head) + dump({VARIABLE: [check.entry for check in checks]})


def _names(checks: Sequence[Check]) -> list[str]:
    return [f"- {check.name}" for check in checks]


def _comment(lines: Sequence[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)
