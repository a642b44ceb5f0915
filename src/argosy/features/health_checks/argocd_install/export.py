"""Export of health checks as files for Git.

In: checks, a namespace and a name. Out: YAML of an ArgoCD resource, of argocd-cm, or of an Ansible vars file.
Never: calls a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.annotations import PART_OF
from argosy.features.health_checks.argocd_install.health_settings_object import HEALTH_CHECKS_FIELD
from argosy.features.health_checks.argocd_install.merge import RequestedHealthCheck
from argosy.gitops.coexistence.argocd_settings_location import (
    DEFAULT_NAMESPACE,
    OPENSHIFT_GITOPS,
    SETTINGS_CONFIG_MAP_NAME,
)
from argosy.kube.objects import dump_yaml

EXPORT_FORMATS: Final = ("cr", "configmap", "ansible")
ANSIBLE_VARIABLE: Final = "validated_patterns_argocd_health_checks"


def render_export(
    export_format: str, checks: Sequence[RequestedHealthCheck], *, namespace: str = "", name: str = ""
) -> str:
    match export_format:
        case "cr":
            return _render_argocd_resource(checks, namespace or OPENSHIFT_GITOPS, name or OPENSHIFT_GITOPS)
        case "configmap":
            return _render_config_map(checks, namespace or DEFAULT_NAMESPACE)
    return _render_ansible_variables(checks)


def _render_argocd_resource(checks: Sequence[RequestedHealthCheck], namespace: str, name: str) -> str:
    comment_lines = [
        "Health checks for an Argo CD that an operator runs, such as OpenShift GitOps:",
        *_list_names(checks),
        "",
        f"To add them by hand, paste the fields below `spec:` into `kubectl edit argocd {name} -n {namespace}`.",
        f"CAREFUL: `kubectl apply` of this file replaces the whole {HEALTH_CHECKS_FIELD} list of that resource,",
        "including health checks that others added. `argosy health apply` merges the list and keeps them.",
    ]
    manifest = {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {HEALTH_CHECKS_FIELD: [check.entry for check in checks]},
    }
    return _render_comment(comment_lines) + dump_yaml(manifest)


def _render_config_map(checks: Sequence[RequestedHealthCheck], namespace: str) -> str:
    comment_lines = [
        "Health checks for an Argo CD that no operator runs:",
        *_list_names(checks),
        "",
        f"`kubectl apply` of this file adds these keys to {SETTINGS_CONFIG_MAP_NAME} and keeps the others.",
        "If an ArgoCD resource owns that ConfigMap, its operator removes the keys again: use the resource instead.",
    ]
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": SETTINGS_CONFIG_MAP_NAME,
            "namespace": namespace,
            "labels": {"app.kubernetes.io/name": SETTINGS_CONFIG_MAP_NAME, PART_OF: "argocd"},
        },
        "data": {check.key: check.script for check in checks},
    }
    return _render_comment(comment_lines) + dump_yaml(manifest)


def _render_ansible_variables(checks: Sequence[RequestedHealthCheck]) -> str:
    comment_lines = ["Health checks for the role validated_patterns_deploy:", *_list_names(checks)]
    return _render_comment(comment_lines) + dump_yaml({ANSIBLE_VARIABLE: [check.entry for check in checks]})


def _list_names(checks: Sequence[RequestedHealthCheck]) -> list[str]:
    return [f"- {check.name}" for check in checks]


def _render_comment(lines: Sequence[str]) -> str:
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)
