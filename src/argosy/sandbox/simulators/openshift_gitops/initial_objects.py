"""Builds the objects of a fresh installation: OpenShift GitOps as an administrator installs it, or a plain Argo CD.

In: nothing. Out: manifests, in the order in which they can be created. Never: runs a program.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from argosy.annotations import PART_OF
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import ARGOPROJ_API_VERSION
from argosy.sandbox.simulators.openshift_gitops import config_maps
from argosy.sandbox.simulators.openshift_gitops.kinds_and_labels import (
    NAME_LABEL,
    POLICY_CONFIG_MAP,
    SETTINGS_CONFIG_MAP,
    SIMULATED_NOTE,
    build_simulated,
)
from argosy.sandbox.simulators.openshift_gitops.workload_manifests import build_deployment, build_stateful_set

GITOPS_NAMESPACE: Final = "openshift-gitops"
OPERATOR_NAME: Final = "openshift-gitops-operator"
VERSION_NAME: Final = f"{OPERATOR_NAME}.v0.0.0-simulated"
PLAIN_NAMESPACE: Final = "argocd"
ADMIN_POLICY: Final = "g, system:cluster-admins, role:admin\ng, cluster-admins, role:admin\n"


def build_openshift_objects() -> Sequence[Manifest]:
    """Build the objects the administrator creates; the operator creates the rest from the ArgoCD resource."""
    return [
        *(
            build_simulated("v1", "Namespace", name)
            for name in (OPERATOR_NAME, "openshift-operators", GITOPS_NAMESPACE)
        ),
        build_simulated(
            "operators.coreos.com/v1",
            "OperatorGroup",
            OPERATOR_NAME,
            OPERATOR_NAME,
            spec={"upgradeStrategy": "Default"},
        ),
        _build_subscription(),
        _build_installed_version(),
        build_deployment(f"{OPERATOR_NAME}-controller-manager", OPERATOR_NAME, {"control-plane": "gitops-operator"}),
        # guides look for the operator's log under this name in these namespaces
        *(
            build_deployment(OPERATOR_NAME, namespace, {"control-plane": "gitops-operator"})
            for namespace in (OPERATOR_NAME, GITOPS_NAMESPACE)
        ),
        build_deployment("cluster", GITOPS_NAMESPACE, {"app.kubernetes.io/component": "gitops-backend"}),
        _build_argocd(),
        _build_default_project(GITOPS_NAMESPACE),
    ]


def build_plain_objects() -> Sequence[Manifest]:
    """Build an Argo CD without operator or owner: nothing reverts edits of its ConfigMaps."""
    part_of_labels = {PART_OF: "argocd"}
    accounts = ("argocd-application-controller", "argocd-server")
    deployments = ("server", "repo-server", "redis", "applicationset-controller", "notifications-controller")
    return [
        build_simulated("v1", "Namespace", PLAIN_NAMESPACE),
        *(
            build_simulated("v1", "ConfigMap", name, PLAIN_NAMESPACE, {NAME_LABEL: name, **part_of_labels})
            for name in (SETTINGS_CONFIG_MAP, POLICY_CONFIG_MAP)
        ),
        _build_admin_secret(),
        *(
            build_simulated("v1", "ServiceAccount", name, PLAIN_NAMESPACE, {NAME_LABEL: name, **part_of_labels})
            for name in accounts
        ),
        *(build_deployment(f"argocd-{name}", PLAIN_NAMESPACE, part_of_labels) for name in deployments),
        build_stateful_set(
            "argocd-application-controller", PLAIN_NAMESPACE, part_of_labels, "argocd-application-controller"
        ),
        _build_default_project(PLAIN_NAMESPACE),
    ]


def _build_subscription() -> Manifest:
    spec = {
        "channel": "latest",
        "installPlanApproval": "Automatic",
        "name": OPERATOR_NAME,
        "source": "redhat-operators",
        "sourceNamespace": "openshift-marketplace",
        "startingCSV": VERSION_NAME,
    }
    return build_simulated("operators.coreos.com/v1alpha1", "Subscription", OPERATOR_NAME, OPERATOR_NAME, spec=spec)


def _build_installed_version() -> Manifest:
    spec = {
        "displayName": f"Red Hat OpenShift GitOps ({SIMULATED_NOTE})",
        "version": "0.0.0-simulated",
        "install": {"strategy": "deployment", "spec": {"deployments": []}},
    }
    return build_simulated(
        "operators.coreos.com/v1alpha1", "ClusterServiceVersion", VERSION_NAME, OPERATOR_NAME, spec=spec
    )


def _build_argocd() -> Manifest:
    """argo: the defaults of OpenShift GitOps: Tekton runs are excluded, and there is no default role."""
    spec = {
        "applicationSet": {},
        "controller": {},
        "rbac": {"defaultPolicy": "", "policy": ADMIN_POLICY, "scopes": "[groups]"},
        "redis": {},
        "repo": {},
        "resourceExclusions": config_maps.render_exclusions((("tekton.dev",), ("TaskRun", "PipelineRun"))),
        "server": {"route": {"enabled": True}},
    }
    return build_simulated("argoproj.io/v1beta1", "ArgoCD", GITOPS_NAMESPACE, GITOPS_NAMESPACE, spec=spec)


def _build_admin_secret() -> Manifest:
    data = {"password": secrets.token_urlsafe(24)}
    return build_simulated(
        "v1", "Secret", "argocd-initial-admin-secret", PLAIN_NAMESPACE, type="Opaque", stringData=data
    )


def _build_default_project(namespace: str) -> Manifest:
    any_kind = {"group": "*", "kind": "*"}
    spec = {
        "clusterResourceWhitelist": [any_kind],
        "destinations": [{"namespace": "*", "server": "*"}],
        "sourceRepos": ["*"],
    }
    return build_simulated(ARGOPROJ_API_VERSION, "AppProject", "default", namespace, spec=spec)
